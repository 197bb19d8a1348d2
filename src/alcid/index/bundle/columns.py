"""Pages and schemas of data files, packed, so that queries need not read a footer.

The pages of a column (`pack_pages`):

    u8 1, the version | a zstd frame of:

    u32   how many schema elements, then for each: u32 length, bytes
    u32   length, Arrow's schema of the column; none if the file has none
    u32   length, the file's writer
    u32   length, why only whole row groups are read; none if pages are known
    numbers: rows of each row group
    u32   how many leaf columns, then for each:
          numbers, by row group: codec, values, where the chunk begins, rows with a dictionary
          numbers, by page: bytes before it that belong to no page, its size, its rows

Numbers are `u8 width | u32 count | count * width bytes`, of width 1, 2, 4 or 8, all lowest bytes
first, then the next: most higher bytes are alike, which zstd packs to little. Integers are
little-endian. A page takes about a byte.

The columns of a file (`schema_bytes`) are an Arrow schema message, which the table of files keeps.
A field has the type that `read_rows` gives. Its metadata say what Arrow's type does not:

    alcid.type         the type, as Paimon writes it; missing if there is none here
    alcid.problem      why the column gets neither index nor statistics; missing if it may
    PARQUET:field_id   the number that the file has beside it; missing if it has none

Files of one table have the same bytes as a rule, and a bundle keeps equal ones once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet import (
    ColumnLayout,
    Field,
    FileLayout,
    LeafLayout,
    restore_field,
)
from alcid.datafiles.parquet.columns import FIELD_ID, FileColumn, place_columns
from alcid.errors import FormatError, LimitError, UnsupportedError
from alcid.formats.puffin.compression import compress, decompress
from alcid.types import DataType

VERSION = 1
"""The version that is written, and the only one so far."""


_LARGEST = 64 << 20  # bytes of a column: some million pages
_WIDTHS = (1, 2, 4, 8)
_MOST = 2.0**61  # beyond any file, and sums of two stay within 64 bits


def pack_pages(layout: FileLayout, column: ColumnLayout) -> bytes:
    """The bytes to keep for one of the columns of a layout.

    Raises:
        UnsupportedError: The column cannot be read, as it is encrypted.
        LimitError: It has some millions of pages.
    """
    name = f"{layout.file}: column {column.field.name}"
    if not column.leaves:
        raise UnsupportedError(f"{name}: {column.whole}")
    field, starts = column.field, layout.starts
    parts = [_u32(len(field.elements)), *map(_text, field.elements)]
    parts += (_text(field.arrow), _text(field.created_by), _text(column.whole.encode()))
    parts += (_numbers(np.diff(starts)), _u32(len(column.leaves)))
    for leaf in column.leaves:
        offsets, sizes, rows = leaf.pieces
        ends = _expected(leaf.groups[2], offsets + sizes, np.searchsorted(rows, starts[:-1]))
        pages = offsets - ends, sizes, np.diff(rows, append=starts[-1])
        parts += map(_numbers, (*leaf.groups, *pages))
    content = b"".join(parts)
    if len(content) > _LARGEST:
        raise LimitError(f"{name}: its pages take {len(content)} bytes, expected up to {_LARGEST}")
    return bytes((VERSION,)) + compress("zstd", content)


def unpack_pages(payloads: Mapping[str, bytes], *, file: str) -> FileLayout:
    """The layout of some columns of a file, in this order, from the payload of each.

    Args:
        payloads: What `pack_pages` gave, by the name of the column.
        file: The file, for errors.

    Raises:
        FormatError: A payload is damaged, is of another column, or they are not of one file.
        UnsupportedError: None was given, or one is of a later version.
    """
    columns = {name: unpack_column(name, data, file=file) for name, data in payloads.items()}
    return join_columns(columns, file=file)


def join_columns(
    columns: Mapping[str, tuple[Int64Array, ColumnLayout]], *, file: str
) -> FileLayout:
    """One layout of columns that `unpack_column` gave, in this order; all of it is checked.

    Raises:
        FormatError: What they say cannot be, or they are not of one file.
        UnsupportedError: There is none.
    """
    if not columns:
        raise UnsupportedError(f"{file}: no column: it is not known how many rows there are")
    starts = next(iter(columns.values()))[0]
    for name, (others, _) in columns.items():
        if others is not starts and not np.array_equal(starts, others):
            raise FormatError(f"pages of {name!r}: other row groups than before", file=file)
    return FileLayout(starts, tuple(column for _, column in columns.values()), file)


def unpack_column(name: str, data: bytes, *, file: str) -> tuple[Int64Array, ColumnLayout]:
    """The row groups, and one column; `join_columns` checks what the numbers say.

    Raises:
        FormatError: The payload is damaged, or of another column.
        UnsupportedError: It is of a later version.
    """
    file = f"{file}: pages of {name!r}"
    if data[:1] != bytes((VERSION,)):
        if data and data[0] > VERSION:
            raise UnsupportedError(f"{file}: found version {data[0]}, expected {VERSION}")
        raise FormatError("no version", file=file, found=data[:1].hex() or "nothing")
    try:
        content = decompress("zstd", data[1:], _LARGEST, file=file, offset=1)
    except LimitError as error:  # damage may state any size
        raise FormatError(str(error)) from None
    reader = _Reader(content, file)
    elements = tuple(reader.text() for _ in range(reader.length()))
    try:
        field = _field(elements, reader.text(), reader.text())
    except FormatError as error:
        raise FormatError(error.problem, file=file, found=error.found) from None
    if field.name != name:
        raise FormatError("another column", file=file, found=field.name, expected=name)
    whole = reader.text()
    starts = np.concatenate(([0], np.cumsum(reader.numbers())))
    leaves = [_leaf(reader, starts) for _ in range(reader.length())]
    if reader.left or len(leaves) != len(field.leaves):
        what = f"{len(leaves)} leaf columns, {reader.left} bytes left over"
        raise FormatError("bad length", file=file, found=what, expected=len(field.leaves))
    try:
        return starts, ColumnLayout(field, tuple(leaves), whole.decode())
    except UnicodeDecodeError:
        raise FormatError("bad text", file=file, found=whole) from None


def _leaf(reader: _Reader, starts: Int64Array) -> LeafLayout:
    count = len(starts) - 1
    groups = np.array([reader.numbers(count) for _ in range(4)])
    gaps = reader.numbers()
    sizes, page_rows = reader.numbers(len(gaps)), reader.numbers(len(gaps))
    rows = np.cumsum(page_rows) - page_rows
    firsts = np.searchsorted(rows, starts[:-1])
    aligned = (np.append(rows, -1)[firsts] == starts[:-1]).all()
    if not aligned or page_rows.sum() != starts[-1] or (page_rows < 1).any():
        raise reader.error("pages do not fill the row groups", page_rows.sum(), starts[-1])
    # Within a row group each page begins where the one before ended, but for the gap.
    before = np.cumsum(gaps + sizes) - gaps - sizes
    bases = groups[2] - before[firsts]
    offsets = bases[np.searchsorted(starts, rows, "right") - 1] + before + gaps
    return LeafLayout(groups, np.stack((offsets, sizes, rows)))


def _expected(begins: Int64Array, ends: Int64Array, firsts: Int64Array) -> Int64Array:
    """Where each page begins if no byte lies before it."""
    expected = np.zeros(len(ends), np.int64)
    expected[1:] = ends[:-1]
    expected[firsts] = begins
    return expected


@lru_cache(maxsize=1024)
def _field(elements: tuple[bytes, ...], arrow: bytes, created_by: bytes) -> Field:
    """The column, with Arrow's schema checked; as a rule all files of a table say the same."""
    field = restore_field(elements, arrow, created_by, file="")
    if arrow:
        try:
            names = pa.ipc.read_schema(pa.py_buffer(arrow)).names
        except (pa.ArrowException, OSError, ValueError):
            raise FormatError("damaged Arrow schema") from None
        if len(names) != 1:
            raise FormatError("bad Arrow schema", found=f"{len(names)} columns")
    return field


def _u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _text(data: bytes) -> bytes:
    return _u32(len(data)) + data


def _numbers(values: Int64Array) -> bytes:
    most = int(values.max(initial=0))
    width = next(width for width in _WIDTHS if most < 1 << 8 * width)
    planes = values.astype(f"<u{width}").view(np.uint8).reshape(len(values), width).T
    return bytes((width,)) + _u32(len(values)) + planes.tobytes()


class _Reader:
    """Reads fields one after the other, each within the bytes that there are."""

    def __init__(self, data: bytes, file: str) -> None:
        self._data, self._file, self._position = data, file, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def byte(self) -> int:
        return self._take(1)[0]

    def text(self) -> bytes:
        return self._take(self.length())

    def numbers(self, count: int | None = None) -> Int64Array:
        """An array, of `count` numbers if that is given."""
        width, length = self.byte(), self.length()
        if width not in _WIDTHS or length != (length if count is None else count):
            raise self.error("bad numbers", f"{length} of {width} bytes", count)
        planes = np.frombuffer(self._take(length * width), np.uint8).reshape(width, length)
        values = np.ascontiguousarray(planes.T).view(f"<u{width}").reshape(length)
        if values.sum(dtype=np.float64) >= _MOST:
            raise self.error("numbers beyond 2^61")
        return values.astype(np.int64)

    def error(self, problem: str, found: object = None, expected: object = None) -> FormatError:
        return FormatError(
            problem, file=self._file, offset=self._position, found=found, expected=expected
        )

    def length(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _take(self, length: int) -> bytes:
        if length > self.left:
            raise self.error("truncated", f"{self.left} bytes", length)
        self._position += length
        return self._data[self._position - length : self._position]


_TYPE, _PROBLEM = b"alcid.type", b"alcid.problem"


def schema_bytes(columns: Iterable[FileColumn]) -> bytes:
    """All columns of a file, in its order.

    >>> column = FileColumn("id", 0, pa.int64(), DataType.parse("BIGINT"))
    >>> schema_columns(schema_bytes([column]), file="a.parquet") == (column,)
    True
    """
    data: bytes = pa.schema([_schema_field(column) for column in columns]).serialize().to_pybytes()
    return data


def schema_columns(data: bytes, *, file: str) -> tuple[FileColumn, ...]:
    """The columns again.

    A type of a later version is none here, so that its column gets no index.

    Args:
        data: What `schema_bytes` gave.
        file: What errors call it.

    Raises:
        FormatError: The bytes are damaged.
    """
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(data))
        placed = place_columns(schema)
        return tuple(
            _described(column, field.metadata or {})
            for column, field in zip(placed, schema, strict=True)
        )
    except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"damaged schema in a bundle: {problem}", file=file) from None


def _schema_field(column: FileColumn) -> pa.Field:
    metadata: dict[bytes, str] = {}
    if column.data_type is not None:
        metadata[_TYPE] = str(column.data_type)
    if column.problem:
        metadata[_PROBLEM] = column.problem
    if column.field_id is not None:
        metadata[FIELD_ID] = str(column.field_id)
    return pa.field(column.name, column.arrow_type, metadata=metadata or None)


def _described(column: FileColumn, metadata: dict[bytes, bytes]) -> FileColumn:
    problem = metadata.get(_PROBLEM, b"").decode()
    if _TYPE not in metadata:
        return replace(column, problem=problem or "no type")
    try:
        data_type = DataType.parse(metadata[_TYPE].decode())
    except UnsupportedError as error:
        return replace(column, problem=problem or str(error))
    return replace(column, data_type=data_type, problem=problem)
