"""The rows of files that a command is given: Parquet, ORC, Arrow, CSV, JSON lines.

Of Parquet, ORC and Arrow files the types are their own. CSV and JSON have few, so that columns get
the types of the table; only what the table does not know is inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from alcid.errors import AlcidError, FormatError, OptionError, UnsupportedError
from alcid.formats.source import BytesSource
from alcid.parquet_file.metadata import leaf_count
from alcid.storage import Storage

__all__ = ["file_schema", "is_parquet", "read_rows", "require_parquet"]

_Read: TypeAlias = Callable[[Any, pa.Schema, str], pa.Table]
"""Reads what is given, an Arrow stream of bytes, for a table of some columns; errors name it."""


def _parquet(data: Any, table: pa.Schema, _name: str) -> pa.Table:
    from pyarrow import parquet

    file = parquet.ParquetFile(data)
    leaves = [file.schema.column(place).physical_type for place in range(len(file.schema))]
    return _with_zones(_int96(data), iter(leaves), table) if "INT96" in leaves else file.read()


def _int96(data: Any) -> pa.Table:
    """Rows in nanoseconds, or in microseconds if there are years that nanoseconds do not reach."""
    from alcid.formats.source import BytesSource
    from alcid.parquet_file import open_scan
    from alcid.parquet_file.decoding import int96_as

    data.seek(0)
    scan = open_scan(BytesSource(data.read()))
    try:
        with int96_as("ns"):
            return scan.read()
    except UnsupportedError:
        return scan.read()


def _with_zones(rows: pa.Table, leaves: Iterator[str], table: pa.Schema) -> pa.Table:
    """Rows whose INT96 columns are moments of the world, as Spark, which writes them, has it.

    They are in microseconds unless some are finer. A column that has no zone in the table keeps
    what the file shows.

    Args:
        rows: The rows.
        leaves: The physical types of the leaf columns.
        table: The columns of the table that the rows are for; may be empty.
    """
    for place, field in enumerate(rows.schema):
        own = [next(leaves) for _ in range(leaf_count(field.type))]
        known = table.field(field.name).type if field.name in table.names else None
        if "INT96" not in own or (known is not None and "tz=" not in str(known)):
            continue
        column = rows.column(place)
        with suppress(pa.ArrowInvalid):  # some are finer
            column = column.cast(_zoned(field.type, iter(own), "us"))
        if column.type == field.type:
            column = column.cast(_zoned(field.type, iter(own), "ns"))
        rows = rows.set_column(place, field.name, column)
    return rows


def _zoned(kind: Any, leaves: Iterator[str], unit: str) -> Any:
    """A type with a zone and a unit for the timestamps that are INT96 in the file."""
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_zoned(one.type, leaves, unit)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(_zoned(kind.key_type, leaves, unit), _zoned(kind.item_type, leaves, unit))
    if pa.types.is_nested(kind):
        return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, leaves, unit)))
    return pa.timestamp(unit, "UTC") if next(leaves) == "INT96" else kind


def _orc(data: Any, _table: pa.Schema, name: str) -> pa.Table:
    from alcid.orc_file import open_orc_scans

    (scan,) = open_orc_scans([BytesSource(data.read(), name)])
    return scan.read()


def _arrow(data: Any, _table: pa.Schema, _name: str) -> pa.Table:
    from pyarrow import feather

    return feather.read_table(data)


def _csv(data: Any, table: pa.Schema, _name: str) -> pa.Table:
    from alcid.cli.text_rows import read_csv

    return read_csv(data.read(), table)


def _json(data: Any, table: pa.Schema, _name: str) -> pa.Table:
    from alcid.cli.text_rows import read_json_lines

    return read_json_lines(data.read(), table)


_FORMATS: Final[Mapping[str, _Read]] = {
    **dict.fromkeys((".parquet", ".pq"), _parquet),
    ".orc": _orc,
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _arrow),
    ".csv": _csv,
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json),
}
_COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}


def read_rows(
    files: Sequence[str], table: pa.Schema, storage_options: Mapping[str, Any] | None = None
) -> pa.Table:
    r"""All rows of files, one after the other.

    Args:
        files: Paths or URIs; what they end with says what they hold.
        table: The columns of the table that the rows are for.
        storage_options: Those of the files.

    Raises:
        OptionError: A file of none of the formats.
        StorageError: A file that cannot be read.
        FormatError: A file that is not what its name says, or values that have not the type.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.csv")
    ...     _ = file.write_text("id,name\n007,\n")
    ...     read_rows([str(file)], pa.schema([("id", pa.int64()), ("name", pa.string())]))
    pyarrow.Table
    id: int64
    name: string
    ----
    id: [[7]]
    name: [[null]]
    """
    found = [_read(file, table, storage_options) for file in files]
    if len(found) == 1:
        return found[0]
    try:
        return pa.concat_tables(found, promote_options="default")
    except pa.ArrowException as error:
        raise UnsupportedError(f"{', '.join(files)}: columns of several types: {error}") from None


def file_schema(file: str, storage_options: Mapping[str, Any] | None = None) -> pa.Schema:
    """The columns of a file."""
    return _read(file, pa.schema([]), storage_options).schema


def is_parquet(file: str) -> bool:
    """Whether a file is taken for one of Parquet."""
    return _format(file)[0] is _parquet


def require_parquet(file: str) -> None:
    """See that a file on this machine can be read; a folder of such files is left to its reader.

    Raises:
        OSError: It cannot be opened.
        FormatError: It is not one of Parquet.
    """
    from pyarrow import parquet

    if Path(file).is_dir():
        return
    try:
        with Path(file).open("rb") as data:
            parquet.read_schema(data)
    except pa.ArrowException as error:
        raise FormatError(str(error).splitlines()[0], file=file) from None


def _read(file: str, table: pa.Schema, storage_options: Mapping[str, Any] | None) -> pa.Table:
    read, compression = _format(file)
    source = Storage.open(file, storage_options).source("")
    data: Any = pa.BufferReader(source.read(0, source.size))
    if compression is not None:
        data = pa.CompressedInputStream(data, compression)
    try:
        return read(data, table, file)
    except UnsupportedError as error:
        raise UnsupportedError(_naming(file, error)) from None
    except AlcidError as error:
        if str(error).startswith(file):
            raise
        raise FormatError(str(error).splitlines()[0], file=file) from None
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise FormatError(str(error).splitlines()[0], file=file) from None


def _naming(file: str, error: Exception) -> str:
    return str(error) if str(error).startswith(file) else f"{file}: {error}"


def _format(file: str) -> tuple[_Read, str | None]:
    """How a file is read, and how it is compressed."""
    name = file.lower()
    ending = next((one for one in _COMPRESSIONS if name.endswith(one)), "")
    for suffix, read in _FORMATS.items():
        if name.removesuffix(ending).endswith(suffix) and (not ending or read in (_csv, _json)):
            return read, _COMPRESSIONS.get(ending)
    expected = ", ".join(_FORMATS)
    raise OptionError(f"{file}: expected a file that ends with one of {expected}")
