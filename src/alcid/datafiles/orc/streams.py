"""The streams of a stripe, as its footer lists them, and the check for null keys of maps.

When Arrow reads a map with a null key, it ends the process. So null keys are looked for before, in
an ORC file that has nothing but the path to the keys: maps become lists, and the bits that say
which keys are present become the values of a BOOLEAN column. A map `m` of strings to numbers within
a struct, for example:

    0 STRUCT                   0 STRUCT
      1 s: STRUCT                1 STRUCT
        2 m: MAP                   2 LIST: its lengths
          3 STRING                   3 BOOLEAN: which strings are there
          4 INT
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.datafiles.orc.footer import (
    BOOLEAN,
    LIST,
    MAP,
    STRUCT,
    OrcColumn,
    OrcType,
    PostScript,
    Stripe,
)
from alcid.datafiles.orc.protobuf import Message, decompress_chunks, encode_message
from alcid.errors import FormatError, UnsupportedError

_PRESENT = 0  # which values are null
_INDEXES = (6, 7, 8)  # row indexes and bloom filters, which are not read
_ROW = 0  # the number of the row itself; whether rows are null is always read


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """The data streams of a stripe."""

    columns: Int64Array
    """The column that each is of."""
    offsets: Int64Array
    lengths: Int64Array
    zone: str
    """The time zone of the writer, as it called it; empty if it is not known."""
    with_nulls: frozenset[int]
    """The columns that may have nulls."""
    message: Message
    """The fields of the footer."""

    def size(self, columns: Int64Array) -> int:
        """The bytes of some columns."""
        return int(self.lengths[np.isin(self.columns, columns)].sum())

    def places(self, columns: Int64Array) -> list[tuple[int, int]]:
        """Offset and length of each stream that is needed for some columns."""
        needed = (np.isin(self.columns, columns) | (self.columns == _ROW)) & (self.lengths > 0)
        return list(zip(self.offsets[needed].tolist(), self.lengths[needed].tolist(), strict=True))


def parse_streams(data: bytes, stripe: Stripe, postscript: PostScript, file: str) -> Streams:
    """Read the footer of a stripe.

    Raises:
        FormatError: It is damaged.
        UnsupportedError: The stripe is encrypted.
    """
    content = decompress_chunks(data, postscript.codec, postscript.block_size, file)
    message = Message(content, file)
    if message.has(4):
        raise UnsupportedError(f"{file}: an encrypted ORC stripe")
    streams = [[stream.number(field) for field in (1, 2, 3)] for stream in message.messages(1)]
    most = stripe.index_length + stripe.data_length
    if sum(length for _, _, length in streams) > most:
        raise FormatError(
            "streams longer than their stripe", file=file, offset=stripe.offset, expected=most
        )
    if any(max(numbers) > np.iinfo(np.int64).max for numbers in streams):
        raise FormatError("damaged ORC stripe footer", file=file, offset=stripe.footer_offset)
    kinds, columns, lengths = np.array(streams, np.int64).reshape(-1, 3).T
    offsets = stripe.offset + np.cumsum(lengths) - lengths
    data_streams = ~np.isin(kinds, _INDEXES)
    return Streams(
        columns[data_streams],
        offsets[data_streams],
        lengths[data_streams],
        "".join(message.texts(3)[-1:]),
        frozenset(columns[(kinds == _PRESENT) & (lengths > 0)].tolist()),
        message,
    )


_KEYS_PRESENT, _DATA, _LENGTH = 0, 1, 2
_OTHER = (1 << 31) - 1  # the number of a column that there is not
_DIRECT = 0


class KeyPath:
    """The types from a top-level column down to the keys of a map in it."""

    def __init__(self, column: OrcColumn, types: Sequence[OrcType]) -> None:
        """For `key_paths`."""
        self._column, self._types = column, types

    def may_have_nulls(self, streams: Streams) -> bool:
        """Whether a stripe has a stream that says which keys are null."""
        return self._types[-1].number in streams.with_nulls

    @property
    def types(self) -> list[bytes]:
        """The columns of the file that has only these, for `one_stripe_file`."""
        above = [
            STRUCT,
            *(STRUCT if column.kind == STRUCT else LIST for column in self._types[:-1]),
        ]
        types = []
        for number, kind in enumerate(above, 1):
            name = [(3, b"c")] if kind == STRUCT else []
            types.append(encode_message([(1, kind), (2, number), *name]))
        return [*types, encode_message([(1, BOOLEAN)])]

    def stripe_footer(self, streams: Streams, file: str) -> Iterator[tuple[int, int | bytes]]:
        """The footer of a stripe of that file."""
        numbers = {
            0: 0,
            **{column.number: position for position, column in enumerate(self._types, 1)},
        }
        key = self._types[-1].number
        for part in streams.message.parts(1):
            stream = Message(part, file)
            kind, number, length = stream.number(1), stream.number(2), stream.number(3)
            known = numbers.get(number, _OTHER)
            if number == key:
                kind, known = (_DATA, known) if kind == _KEYS_PRESENT else (kind, _OTHER)
            elif kind not in (_KEYS_PRESENT, _LENGTH):
                known = _OTHER
            yield 1, encode_message([(1, kind), (2, known), (3, length)])
        encodings = streams.message.parts(2)
        if len(encodings) <= key:
            raise FormatError(
                "damaged ORC stripe footer", file=file, found=f"{len(encodings)} encodings"
            )
        yield 2, encodings[0]
        for column in self._types[:-1]:
            yield 2, encodings[column.number]
        yield 2, encode_message([(1, _DIRECT)])

    def check(self, batch: pa.RecordBatch, file: str) -> None:
        """See that all keys are there, in rows of that file.

        Raises:
            UnsupportedError: One is not.
        """
        values = batch.column(0)
        while not pa.types.is_boolean(values.type):
            values = values.flatten()
            if isinstance(values, list):
                (values,) = values
        if not pc.all(values, min_count=0).as_py():
            raise UnsupportedError(
                f"{file}: column {self._column.name}: a map with a null key, which is not read; "
                "read other columns, or write the rows again without it"
            )


def key_paths(column: OrcColumn) -> list[KeyPath]:
    """The ways to the keys of all maps in a column."""
    return [KeyPath(column, types) for types in _paths(column.type, ())]


def _paths(column: OrcType, above: tuple[OrcType, ...]) -> Iterator[tuple[OrcType, ...]]:
    if column.kind == MAP:
        yield *above, column, column.children[0]
    for child in column.children:
        yield from _paths(child, (*above, column))
