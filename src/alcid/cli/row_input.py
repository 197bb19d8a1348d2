"""The rows of files that a command is given: Parquet, ORC, Arrow, CSV, JSON lines.

Of Parquet, ORC and Arrow files the types are their own. CSV and JSON have few, so that columns get
the types of the table; only what the table does not know is inferred.

Rows that a command puts into a table: the files are read here, or by Spark where it writes.

Rows of CSV and of JSON lines, in the types of the table that they are for.

A moment without a zone, in a column of moments, is one of the time zone of `alcid.options`, as in
predicates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import typer
from pyarrow import csv, types
from pyarrow import json as arrow_json

from alcid.cli.options import pairs
from alcid.cli.tables import Opening
from alcid.config import current_settings
from alcid.datafiles.parquet.footer import leaf_count
from alcid.errors import (
    AlcidError,
    FormatError,
    OptionError,
    UnsupportedError,
)
from alcid.formats.source import BytesSource
from alcid.options import match_column
from alcid.storage import Storage

if TYPE_CHECKING:
    from alcid.cli.tables import AnyTable

__all__ = [
    "Files",
    "WriteReport",
    "arrow_rows",
    "file_schema",
    "is_parquet",
    "read_csv",
    "read_json_lines",
    "read_rows",
    "require_parquet",
    "spark_rows",
]

_Read: TypeAlias = Callable[[Any, pa.Schema, str], pa.Table]
"""Reads what is given, an Arrow stream of bytes, for a table of some columns; errors name it."""


def _parquet(data: Any, table: pa.Schema, _name: str) -> pa.Table:
    from pyarrow import parquet

    file = parquet.ParquetFile(data)
    leaves = [file.schema.column(place).physical_type for place in range(len(file.schema))]
    return _with_zones(_int96(data), iter(leaves), table) if "INT96" in leaves else file.read()


def _int96(data: Any) -> pa.Table:
    """Rows in nanoseconds, or in microseconds if there are years that nanoseconds do not reach."""
    from alcid.datafiles.parquet import open_scan
    from alcid.datafiles.parquet.decoding import int96_as
    from alcid.formats.source import BytesSource

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
    from alcid.datafiles.orc import open_orc_scans

    (scan,) = open_orc_scans([BytesSource(data.read(), name)])
    return scan.read()


def _arrow(data: Any, _table: pa.Schema, _name: str) -> pa.Table:
    from pyarrow import feather

    return feather.read_table(data)


def _csv(data: Any, table: pa.Schema, _name: str) -> pa.Table:

    return read_csv(data.read(), table)


def _json(data: Any, table: pa.Schema, _name: str) -> pa.Table:

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


Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Files with the rows: .parquet, .orc, .arrow, .csv (with a head) or .jsonl (an object"
        " on each line); the last two also with .gz or .zst.",
        show_default=False,
    ),
]


class _Report(Protocol):
    @property
    def dry_run(self) -> bool: ...

    def to_dict(self) -> dict[str, Any]: ...


def arrow_rows(files: Sequence[str], table: AnyTable, how: Opening) -> pa.Table:
    """The rows, in the memory of this process."""
    return read_rows(files, table.schema, pairs("--storage-option", how.storage_option) or None)


def spark_rows(files: Sequence[str], table: AnyTable, how: Opening, session: Any) -> Any:
    """The rows as a DataFrame; what Spark cannot read as we do goes through this process."""
    if all(is_parquet(file) and "://" not in file for file in files):
        for file in files:
            require_parquet(file)
        return session.read.option("mergeSchema", True).parquet(*files)
    return session.createDataFrame(arrow_rows(files, table, how))


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What a write did; a dry run also tells how the columns go together."""

    report: _Report
    given: tuple[str, ...]
    """The columns of the rows."""
    table: tuple[str, ...]
    """Those of the table."""

    @property
    def absent(self) -> list[str]:
        """Columns of the table that the rows do not have."""
        return [name for name in self.table if match_column(name, self.given) is None]

    def __str__(self) -> str:
        lines = [str(self.report)]
        if self.report.dry_run:
            lines.append(f"columns: {', '.join(self.given)}")
            lines += [f"not given: {', '.join(self.absent)}"] if self.absent else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        document = self.report.to_dict()
        if self.report.dry_run:
            document |= {"columns": list(self.given), "not_given": self.absent}
        return document


_ZONE = r":\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)$"
_EPOCH_DAY = "1970-01-01"


def read_csv(content: bytes, table: pa.Schema) -> pa.Table:
    r"""Rows below a head; a field without anything is null, one of two quotes the empty text.

    >>> columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    >>> read_csv(b'id,name\n007,\n8,""\n', columns).to_pylist()
    [{'id': 7, 'name': None}, {'id': 8, 'name': ''}]
    """
    names = csv.open_csv(pa.BufferReader(content)).schema.names
    wanted = _types(names, table)
    for name, kind in wanted.items():
        if types.is_nested(kind):
            raise UnsupportedError(f"column {name}: CSV does not hold {kind}: give JSON or Parquet")
    moments = {name: kind for name, kind in wanted.items() if _is_moment(kind)}
    how = csv.ConvertOptions(
        column_types=wanted | dict.fromkeys(moments, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return _with_texts(csv.read_csv(pa.BufferReader(content), convert_options=how), moments)


def read_json_lines(content: bytes, table: pa.Schema) -> pa.Table:
    r"""Rows of which each is an object on a line of its own.

    >>> columns = pa.schema([("day", pa.date32()), ("tags", pa.map_(pa.string(), pa.int32()))])
    >>> read_json_lines(b'{"day": "2025-08-01", "tags": {"a": 1}}\n', columns).to_pylist()
    [{'day': datetime.date(2025, 8, 1), 'tags': [('a', 1)]}]
    """
    names = arrow_json.read_json(pa.BufferReader(content)).schema.names
    wanted = _types(names, table)
    maps = {name: kind for name, kind in wanted.items() if _has_map(kind)}
    texts = {name: kind for name, kind in wanted.items() if _is_moment(kind) or _is_time(kind)}
    plain = {name: kind for name, kind in wanted.items() if name not in maps}
    how = arrow_json.ParseOptions(
        explicit_schema=pa.schema(list((plain | dict.fromkeys(texts, pa.string())).items()))
    )
    rows = arrow_json.read_json(pa.BufferReader(content), parse_options=how)
    if maps:  # which Arrow does not read
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        for name, kind in maps.items():
            values = pa.array([_as_pairs(line.get(name), kind) for line in lines], kind)
            rows = rows.set_column(rows.schema.names.index(name), name, values)
    return _with_texts(rows, texts)


def _types(names: Sequence[str], table: pa.Schema) -> dict[str, Any]:
    """The types of those columns of a file that the table has."""
    found = {name: match_column(name, table.names) for name in names}
    return {name: table.field(own).type for name, own in found.items() if own is not None}


def _is_moment(kind: Any) -> bool:
    return bool(types.is_timestamp(kind)) and kind.tz is not None


def _is_time(kind: Any) -> bool:
    return bool(types.is_date(kind) or types.is_time(kind))


def _has_map(kind: Any) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return bool(types.is_map(kind)) or any(map(_has_map, inner))


def _as_pairs(value: Any, kind: Any) -> Any:
    """A value of JSON with maps as Arrow takes them; what is no map is left for it to refuse."""
    if types.is_map(kind) and isinstance(value, dict):
        return [(key, _as_pairs(item, kind.item_type)) for key, item in value.items()]
    if types.is_list(kind) and isinstance(value, list):
        return [_as_pairs(item, kind.value_type) for item in value]
    if types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _as_pairs(value.get(field.name), field.type) for field in kind}
    return value


def _with_texts(rows: pa.Table, wanted: Mapping[str, Any]) -> pa.Table:
    """The rows with values in place of the texts of some columns."""
    for name, kind in wanted.items():
        place = rows.schema.names.index(name)
        try:
            values = _from_text(rows.column(place), kind)
        except pa.ArrowException as error:
            raise UnsupportedError(f"column {name}: {str(error).splitlines()[0]}") from None
        rows = rows.set_column(place, name, values)
    return rows


def _from_text(texts: pa.ChunkedArray, kind: Any) -> pa.ChunkedArray:
    if types.is_time(kind):
        moments = pc.binary_join_element_wise(_EPOCH_DAY, texts, " ")
        return moments.cast(pa.timestamp("ns")).cast(kind)
    if not _is_moment(kind):
        return texts.cast(kind)
    has_zone = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    local = pc.if_else(has_zone, nothing, texts).cast(pa.timestamp(kind.unit))
    local = pc.assume_timezone(
        local, current_settings().timezone, ambiguous="earliest", nonexistent="latest"
    )
    return pc.coalesce(pc.if_else(has_zone, texts, nothing).cast(kind), local.cast(kind))
