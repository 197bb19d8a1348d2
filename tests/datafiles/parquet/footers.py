"""Rewritten Parquet footers: any writer, statistics and counts in a file that Arrow wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

BOOL, BYTE, I32, I64, BINARY, LIST, STRUCT = 1, 3, 5, 6, 8, 9, 12
_FALSE = 2


@dataclass
class Node:
    """A Thrift struct whose fields can be set, and that is otherwise written as it was read."""

    fields: dict[int, tuple[int, Any]] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Any:
        return self.fields[number][1]

    def __contains__(self, number: int) -> bool:
        return number in self.fields

    def set(self, number: int, kind: int, value: Any) -> None:
        """Set a field; a list is a pair: the kind of its elements, and the elements."""
        self.fields[number] = kind, value

    def drop(self, *numbers: int) -> None:
        """Remove existing fields."""
        for number in numbers:
            self.fields.pop(number, None)

    def move(self, old: int, new: int) -> None:
        """Give a field another number."""
        self.fields[new] = self.fields.pop(old)

    def structs(self, number: int) -> list[Node]:
        """The elements of a list of structs."""
        return list(self[number][1])


def edit_footer(data: bytes, edit: Callable[[Node], None]) -> bytes:
    """A Parquet file with another footer; everything before it is unchanged."""
    length = int.from_bytes(data[-8:-4], "little")
    begin = len(data) - 8 - length
    footer, _ = _read_struct(data, begin)
    edit(footer)
    written = _write_struct(footer)
    return data[:begin] + written + len(written).to_bytes(4, "little") + b"PAR1"


def chunks(footer: Node) -> list[Node]:
    """The metadata of every column chunk, row group by row group."""
    return [chunk[3] for group in footer.structs(4) for chunk in group.structs(1)]


def _read_struct(data: bytes, at: int) -> tuple[Node, int]:
    node = Node()
    number = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            raw, at = _read_varint(data, at)
            number = raw >> 1 ^ -(raw & 1)
        if kind in (BOOL, _FALSE):
            node.set(number, BOOL, kind == BOOL)
            continue
        value, at = _read_value(data, at, kind)
        node.set(number, kind, value)
    return node, at + 1


def _read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return _read_struct(data, at)
    if kind == LIST:
        element, count = data[at] & 15, data[at] >> 4
        at += 1
        if count == 15:
            count, at = _read_varint(data, at)
        values = []
        for _ in range(count):
            value, at = _read_value(data, at, BYTE if element in (1, 2) else element)
            values.append(value)
        return (element, values), at
    if kind in (BYTE, BOOL):
        return data[at], at + 1
    raw, at = _read_varint(data, at)
    if kind == BINARY:
        return data[at : at + raw], at + raw
    return raw >> 1 ^ -(raw & 1), at


def _write_struct(node: Node) -> bytes:
    written = bytearray()
    for number, (kind, value) in sorted(node.fields.items()):
        if kind == BOOL:
            written += bytes([BOOL if value else _FALSE]) + _zigzag(number)
        else:
            written += bytes([kind]) + _zigzag(number) + _write_value(kind, value)
    return bytes(written) + b"\0"


def _write_value(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        return _write_struct(value)
    if kind == LIST:
        element, values = value
        inside = BYTE if element in (1, 2) else element
        parts = [_write_value(inside, item) for item in values]
        return bytes([0xF0 | element]) + _varint(len(values)) + b"".join(parts)
    if kind == BYTE:
        return bytes([value])
    return _varint(len(value)) + value if kind == BINARY else _zigzag(value)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
