"""Rows from input files, for `append` and `upsert`: Parquet, ORC, Arrow, CSV and JSON lines.

Parquet, ORC and Arrow files have their own types. CSV and JSON have few, so their columns get the
types of the table, and only the types of other columns are inferred. A timestamp without a zone in
a TIMESTAMP WITH LOCAL TIME ZONE column is in the time zone of `alcid.config`, as in predicates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import typer
from pyarrow import csv, types
from pyarrow import json as arrow_json

from alcid.cli.options import pairs
from alcid.cli.tables import Opening
from alcid.config import current_settings
from alcid.datafiles.parquet.footer import leaf_count
from alcid.errors import AlcidError, FormatError, OptionError, UnsupportedError
from alcid.formats.source import BytesSource
from alcid.options import match_column
from alcid.storage import Storage

if TYPE_CHECKING:
    from alcid.cli.tables import AnyTable

_Read: TypeAlias = Callable[[Any, pa.Schema, str], pa.Table]
"""Reads an Arrow byte stream for a table with some columns; errors name the file."""


def _parquet(data: Any, table: pa.Schema, _name: str) -> pa.Table:
    from pyarrow import parquet

    file = parquet.ParquetFile(data)
    leaves = [file.schema.column(position).physical_type for position in range(len(file.schema))]
    return _with_zones(_int96(data), iter(leaves), table) if "INT96" in leaves else file.read()


def _int96(data: Any) -> pa.Table:
    """Rows in nanoseconds, or in microseconds if years are out of the range of nanoseconds."""
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
    """Rows whose INT96 columns are UTC timestamps, as Spark, which writes them, defines.

    They are in microseconds unless some are finer. A column without a zone in the table keeps the
    local time of the file. `leaves` are the physical types of the leaf columns.
    """
    for position, field in enumerate(rows.schema):
        own = [next(leaves) for _ in range(leaf_count(field.type))]
        table_type = table.field(field.name).type if field.name in table.names else None
        if "INT96" not in own or (table_type is not None and "tz=" not in str(table_type)):
            continue
        column = rows.column(position)
        with suppress(pa.ArrowInvalid):  # some are finer
            column = column.cast(_zoned(field.type, iter(own), "us"))
        if column.type == field.type:
            column = column.cast(_zoned(field.type, iter(own), "ns"))
        rows = rows.set_column(position, field.name, column)
    return rows


def _zoned(kind: Any, leaves: Iterator[str], unit: str) -> Any:
    """A type with a zone and a unit for the timestamps that are INT96 in the file."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_zoned(field.type, leaves, unit)) for field in kind])
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
    r"""All rows of several files; the suffix of each decides its format.

    Raises:
        OptionError: The suffix of a file is not supported.
        StorageError: A file cannot be read.
        FormatError: A file has another format than its suffix says, or values of another type.

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
    tables = [_read(file, table, storage_options) for file in files]
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException as error:
        raise UnsupportedError(f"{', '.join(files)}: columns of different types: {error}") from None


def file_schema(file: str, storage_options: Mapping[str, Any] | None = None) -> pa.Schema:
    """The columns of a file."""
    return _read(file, pa.schema([]), storage_options).schema


def is_parquet(file: str) -> bool:
    """Whether the suffix is that of Parquet."""
    return _format(file)[0] is _parquet


def require_parquet(file: str) -> None:
    """Check that a local file is readable Parquet; folders are left to Spark.

    Raises:
        OSError: The file cannot be opened.
        FormatError: It is not a Parquet file.
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
    """The reader and the compression of a file, by its suffix."""
    name = file.lower()
    ending = next((suffix_ for suffix_ in _COMPRESSIONS if name.endswith(suffix_)), "")
    for suffix, read in _FORMATS.items():
        if name.removesuffix(ending).endswith(suffix) and (not ending or read in (_csv, _json)):
            return read, _COMPRESSIONS.get(ending)
    expected = ", ".join(_FORMATS)
    raise OptionError(f"{file}: expected a file that ends with one of {expected}")


Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Files with rows: .parquet, .orc, .arrow, .csv (with a header) or .jsonl (one object"
        " per line); the last two also with .gz or .zst.",
        show_default=False,
    ),
]


def arrow_rows(files: Sequence[str], table: AnyTable, how: Opening) -> pa.Table:
    """The rows as an Arrow table in this process."""
    return read_rows(files, table.schema, pairs("--storage-option", how.storage_option) or None)


def spark_rows(files: Sequence[str], table: AnyTable, how: Opening, session: Any) -> Any:
    """The rows as a DataFrame; this process reads what Spark would read differently."""
    if all(is_parquet(file) and "://" not in file for file in files):
        for file in files:
            require_parquet(file)
        return session.read.option("mergeSchema", True).parquet(*files)
    return session.createDataFrame(arrow_rows(files, table, how))


_ZONE = r":\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)$"
_EPOCH_DAY = "1970-01-01"


def read_csv(content: bytes, table: pa.Schema) -> pa.Table:
    r"""Read CSV with a header; an empty field is null, two quotes are the empty string.

    >>> columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    >>> read_csv(b'id,name\n007,\n8,""\n', columns).to_pylist()
    [{'id': 7, 'name': None}, {'id': 8, 'name': ''}]
    """
    names = csv.open_csv(pa.BufferReader(content)).schema.names
    table_types = _types(names, table)
    for name, kind in table_types.items():
        if types.is_nested(kind):
            raise UnsupportedError(f"column {name}: CSV cannot contain {kind}: use JSON or Parquet")
    timestamps = {name: kind for name, kind in table_types.items() if _has_zone(kind)}
    convert_options = csv.ConvertOptions(
        column_types=table_types | dict.fromkeys(timestamps, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return _parse_texts(
        csv.read_csv(pa.BufferReader(content), convert_options=convert_options), timestamps
    )


def read_json_lines(content: bytes, table: pa.Schema) -> pa.Table:
    r"""Read JSON lines, an object per row.

    >>> columns = pa.schema([("day", pa.date32()), ("tags", pa.map_(pa.string(), pa.int32()))])
    >>> read_json_lines(b'{"day": "2025-08-01", "tags": {"a": 1}}\n', columns).to_pylist()
    [{'day': datetime.date(2025, 8, 1), 'tags': [('a', 1)]}]
    """
    names = arrow_json.read_json(pa.BufferReader(content)).schema.names
    table_types = _types(names, table)
    maps = {name: kind for name, kind in table_types.items() if _has_map(kind)}
    texts = {name: kind for name, kind in table_types.items() if _has_zone(kind) or _is_time(kind)}
    arrow_types = {name: kind for name, kind in table_types.items() if name not in maps}
    parse_options = arrow_json.ParseOptions(
        explicit_schema=pa.schema(list((arrow_types | dict.fromkeys(texts, pa.string())).items()))
    )
    rows = arrow_json.read_json(pa.BufferReader(content), parse_options=parse_options)
    if maps:  # Arrow does not read maps
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        for name, kind in maps.items():
            values = pa.array([_as_pairs(line.get(name), kind) for line in lines], kind)
            rows = rows.set_column(rows.schema.names.index(name), name, values)
    return _parse_texts(rows, texts)


def _types(names: Sequence[str], table: pa.Schema) -> dict[str, Any]:
    """The table's types of the columns that a file shares with it."""
    matches = {name: match_column(name, table.names) for name in names}
    return {name: table.field(match).type for name, match in matches.items() if match is not None}


def _has_zone(kind: Any) -> bool:
    return bool(types.is_timestamp(kind)) and kind.tz is not None


def _is_time(kind: Any) -> bool:
    return bool(types.is_date(kind) or types.is_time(kind))


def _has_map(kind: Any) -> bool:
    inner = [kind.field(position).type for position in range(kind.num_fields)]
    return bool(types.is_map(kind)) or any(map(_has_map, inner))


def _as_pairs(value: Any, kind: Any) -> Any:
    """A JSON value with maps as Arrow expects them; Arrow refuses other values."""
    if types.is_map(kind) and isinstance(value, dict):
        return [(key, _as_pairs(item, kind.item_type)) for key, item in value.items()]
    if types.is_list(kind) and isinstance(value, list):
        return [_as_pairs(item, kind.value_type) for item in value]
    if types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _as_pairs(value.get(field.name), field.type) for field in kind}
    return value


def _parse_texts(rows: pa.Table, column_types: Mapping[str, Any]) -> pa.Table:
    """Parse the columns that were read as text."""
    for name, kind in column_types.items():
        position = rows.schema.names.index(name)
        try:
            values = _from_text(rows.column(position), kind)
        except pa.ArrowException as error:
            raise UnsupportedError(f"column {name}: {str(error).splitlines()[0]}") from None
        rows = rows.set_column(position, name, values)
    return rows


def _from_text(texts: pa.ChunkedArray, kind: Any) -> pa.ChunkedArray:
    if types.is_time(kind):
        timestamps = pc.binary_join_element_wise(_EPOCH_DAY, texts, " ")
        return timestamps.cast(pa.timestamp("ns")).cast(kind)
    if not _has_zone(kind):
        return texts.cast(kind)
    has_zone = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    local = pc.if_else(has_zone, nothing, texts).cast(pa.timestamp(kind.unit))
    local = pc.assume_timezone(
        local, current_settings().timezone, ambiguous="earliest", nonexistent="latest"
    )
    return pc.coalesce(pc.if_else(has_zone, texts, nothing).cast(kind), local.cast(kind))
