"""Records of manifests, manifest lists and index manifests: Avro containers, or ORC files.

Records are read by the schema in the file: names of records differ between writers, and older
writers omit newer fields. With `manifest.format=orc` records have the same fields in an ORC file,
whose footer is checked before Arrow sees it; the data of ORC files has no checksums.

A newer Paimon adds fields. An unknown field keeps its value and its Avro type (`UnknownField`), and
is written again with its record.
"""

from __future__ import annotations

import copy
import gc
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import fastavro
import pyarrow as pa

from alcid.datafiles.orc.footer import MAGIC, parse_footer, read_tails
from alcid.datafiles.parquet import ReadReport
from alcid.datafiles.parquet.decoding import naming_damage
from alcid.errors import FormatError, OptionError, UnsupportedError
from alcid.formats.avro import inner_types, read_records, short_name
from alcid.formats.source import BytesSource, read_each

if TYPE_CHECKING:
    from pyarrow.orc import ORCFile

_AVRO_TYPES: Final = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"),
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}
_TIME: Final = pa.timestamp("ms", "UTC")
"""The type of `_CREATION_TIME` in Avro manifests."""


def is_orc(data: bytes) -> bool:
    """Whether a manifest is an ORC file.

    >>> is_orc(b"ORC..."), is_orc(b"Obj" + bytes([1]))
    (True, False)
    """
    return data.startswith(MAGIC)


def read_orc(data: bytes, *, file: str) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The schema and the records of an ORC file, in the form of Avro's.

    Raises:
        FormatError: It is damaged, or states more records than it has bytes.
        LimitError: Its footer is too large.
        UnsupportedError: It is encrypted, compressed in a way that Paimon does not, or has a field
            of a type that manifests do not have.
    """
    from pyarrow.orc import ORCFile

    source = BytesSource(data, file)
    (tail,) = read_tails([source], ReadReport(), read_each)
    footer = parse_footer(tail.footer, tail.postscript, source)
    rows = sum(stripe.rows for stripe in footer.stripes)
    if rows > len(data):  # every entry has a name, and names differ
        raise FormatError("records of an ORC manifest", file=file, found=rows, expected=len(data))
    with naming_damage(file, "damaged ORC manifest"):
        opened = ORCFile(io.BytesIO(data))
        schema = _avro_type(pa.struct(list(opened.schema)), file)
    return schema, _records(opened, file)


def _records(opened: ORCFile, file: str) -> Iterator[dict[str, Any]]:
    for stripe in range(opened.nstripes):
        with naming_damage(file, "damaged ORC manifest"):
            batch = opened.read_stripe(stripe)
            columns = [_as_in_avro(column) for column in batch.columns]
            records = pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()
        yield from records


def _avro_type(kind: Any, file: str, name: str = "record") -> Any:
    """The Avro type of a field."""
    if pa.types.is_struct(kind):
        fields = [
            {"name": field.name, "type": ["null", _avro_type(field.type, file, field.name)]}
            for field in kind
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, file, name)]}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-millis"}
    if kind not in _AVRO_TYPES:
        raise UnsupportedError(f"{file}: field {name}: {kind} is no type of a manifest")
    return _AVRO_TYPES[kind]


def _as_in_avro(values: pa.Array) -> pa.Array:
    """Timestamps, also those of a struct, as instants in milliseconds."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("ms")).cast(_TIME)
    if not pa.types.is_struct(values.type):
        return values
    children = [_as_in_avro(child) for child in values.flatten()]
    return pa.StructArray.from_arrays(
        children, [field.name for field in values.type], mask=values.is_null()
    )


ITEM: Final = "*"
"""Stands in a path for the items of an array."""

_NAMED: Final = ("record", "error", "enum", "fixed")
_MOST_TYPES: Final = 10_000
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that this version does not know."""

    path: _Path
    """The names of the fields that lead to it, its own the last; `*` for the items of an array."""
    kind: str
    """Its nullable Avro type as self-contained JSON; empty: unknown."""
    value: Any = field(hash=False)
    """Its value; in items of an array, by the first field of each item."""


class FieldFinder:
    """Finds the unknown fields in the records of one file."""

    def __init__(self, written: Any, known: Mapping[str, Any], *, file: str) -> None:
        """Compare two schemas.

        Args:
            written: The schema that the file was written with.
            known: The schema of the records that this version writes.
            file: Its name, for errors.

        Raises:
            FormatError: A type that refers to a type which the schema does not have, or that is
                made of too many types.
        """
        self._file = file
        self._named: dict[str, Any] = {}
        self._collect(written)
        self._unknown = list(self._compare(written, known, ()))

    @property
    def is_empty(self) -> bool:
        """Whether the file has known fields only."""
        return not self._unknown

    def find(self, record: Mapping[str, Any]) -> tuple[UnknownField, ...]:
        """The unknown fields of a record that are not null."""
        if not self._unknown:
            return ()
        fields = ((path, kind, _value(record, path)) for path, kind in self._unknown)
        return tuple(UnknownField(*parts) for parts in fields if parts[2] is not None)

    def _collect(self, kind: Any) -> None:
        """Collect the named types."""
        if isinstance(kind, dict) and kind.get("type") in _NAMED:
            self._named.setdefault(short_name(kind["name"]), kind)
        for inner in inner_types(kind):
            self._collect(inner)

    def _compare(self, written: Any, known: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
        written, known = self._without_null(written), self._without_null(known)
        match written, known:
            case {"type": "record", "fields": fields}, {"type": "record", "fields": others}:
                types = {other["name"]: other["type"] for other in others}
                for entry in fields:
                    name, kind = entry["name"], entry["type"]
                    if name in types:
                        yield from self._compare(kind, types[name], (*path, name))
                    else:
                        branches = kind if isinstance(kind, list) else [kind]
                        optional = ["null", *(branch for branch in branches if branch != "null")]
                        whole = self._whole(optional, (*path, name), [0])
                        yield (*path, name), json.dumps(whole, sort_keys=True)
            case {"type": "array", "items": item}, {"type": "array", "items": other}:
                yield from self._compare(item, other, (*path, ITEM))

    def _without_null(self, kind: Any) -> Any:
        """The only type of a union besides null; the union itself if there are several."""
        if isinstance(kind, list):
            others = [branch for branch in kind if branch != "null"]
            kind = others[0] if len(others) == 1 else kind
        return self._named.get(short_name(kind), kind) if isinstance(kind, str) else kind

    def _whole(self, kind: Any, path: _Path, seen: list[int]) -> Any:
        """A type with all types that it refers to inlined, and named after the path."""
        seen[0] += 1
        if seen[0] > _MOST_TYPES:
            raise FormatError(
                f"schema of an Avro file: {path[-1]}: too many types", file=self._file
            )
        if isinstance(kind, list):
            return [self._whole(branch, path, seen) for branch in kind]
        if isinstance(kind, str):
            defined = self._named.get(short_name(kind))
            return kind if defined is None else self._whole(defined, path, seen)
        whole = {key: value for key, value in kind.items() if key not in ("namespace", "aliases")}
        if whole["type"] in _NAMED:
            whole["name"] = f"record_{'_'.join(path).replace(ITEM, 'item')}_{seen[0]}"
        match whole:
            case {"type": "record" | "error", "fields": fields}:
                whole["fields"] = [
                    {**entry, "type": self._whole(entry["type"], path, seen)} for entry in fields
                ]
            case {"type": "array", "items": item}:
                whole["items"] = self._whole(item, path, seen)
            case {"type": "map", "values": item}:
                whole["values"] = self._whole(item, path, seen)
            case {"type": dict() | list() as inner}:
                whole["type"] = self._whole(inner, path, seen)
        return whole


def extend_schema(
    schema: Mapping[str, Any], unknown: Iterable[tuple[UnknownField, ...]]
) -> dict[str, Any]:
    """The schema of records with unknown fields.

    Raises:
        UnsupportedError: A field has two types, or its type is unknown.
    """
    kinds: dict[_Path, str] = {}
    for fields in unknown:
        for unknown_field in fields:
            kind = kinds.setdefault(unknown_field.path, unknown_field.kind)
            if kind != unknown_field.kind or not kind:
                types = "is of two types" if kind else "is of an unknown type"
                raise UnsupportedError(
                    f"{'.'.join(unknown_field.path)}: written by a newer Paimon, and {types}: its "
                    "record cannot be written again; commit with that Paimon"
                )
    extended = copy.deepcopy(dict(schema))
    for path, kind in kinds.items():
        *above, name = path
        described = {"name": name, "type": json.loads(kind), "default": None}
        _record_at(extended, above)["fields"].append(described)
    return extended


def put_values(record: dict[str, Any], unknown: Iterable[UnknownField]) -> dict[str, Any]:
    """Put unknown fields into a record."""
    for unknown_field in unknown:
        _put(record, unknown_field.path, unknown_field.value)
    return record


def _value(record: Any, path: _Path) -> Any:
    """The value of a field; None if a field on the way to it is null."""
    for depth, name in enumerate(path):
        if record is None:
            return None
        if name == ITEM:
            rest = path[depth + 1 :]
            items = {next(iter(item.values())): _value(item, rest) for item in record}
            return {key: value for key, value in items.items() if value is not None} or None
        record = record.get(name)
    return record


def _put(record: Any, path: _Path, value: Any) -> None:
    name, *rest = path
    if name == ITEM:
        for item in record:
            if (key := next(iter(item.values()))) in value:
                _put(item, tuple(rest), value[key])
    elif not rest:
        record[name] = value
    elif record.get(name) is not None:
        _put(record[name], tuple(rest), value)


def _record_at(schema: Any, path: Iterable[str]) -> dict[str, Any]:
    """The record at a path within a schema."""
    for name in path:
        if name == ITEM:
            schema = schema["items"]
        else:
            schema = next(entry["type"] for entry in schema["fields"] if entry["name"] == name)
        if isinstance(schema, list):
            (schema,) = (branch for branch in schema if branch != "null")
    record: dict[str, Any] = schema
    return record


CODECS = {"zstd": "zstandard", "none": "null", "snappy": "snappy", "deflate": "deflate"}
"""Avro's names for the values of `manifest.compression`."""

T = TypeVar("T")
Record = dict[str, Any]


def read_as(
    parse: Callable[[Record, tuple[UnknownField, ...], str], T],
    data: bytes,
    *,
    schema: Record,
    version: int,
    what: str,
    file: str,
) -> list[T]:
    """Parse all records of a container, which may be an ORC file.

    Args:
        parse: Parses a record; it is also passed the unknown fields, and the file name for errors.
        data: The container.
        schema: The known fields.
        version: The newest known version of records.
        what: The kind of file, for errors.
        file: Its name.

    Raises:
        FormatError: It is damaged, a record has no such field, or is of a newer version.
    """
    parsed: list[T] = []
    try:
        written, records = (read_orc if is_orc(data) else read_records)(data, file=file)
        unknown = FieldFinder(written, schema, file=file)
        for record in records:
            if record.get("_VERSION", version) > version:
                raise FormatError(
                    f"version of a {what}", file=file, found=record["_VERSION"], expected=version
                )
            parsed.append(parse(record, unknown.find(record), file))
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise FormatError(f"damaged {what}: {error!r}", file=file) from None
    return parsed


def write_records(
    schema: Record,
    records: Iterable[Record],
    compression: str,
    unknown: Iterable[tuple[UnknownField, ...]] = (),
) -> bytes:
    """A container of records.

    Args:
        schema: The schema of the known fields.
        records: The records.
        compression: The value of `manifest.compression`.
        unknown: The unknown fields of the records.

    Raises:
        OptionError: No such compression.
        UnsupportedError: An unknown field has two types.
    """
    if compression not in CODECS:
        raise OptionError(
            f"manifest.compression: found {compression}, expected one of {', '.join(CODECS)}"
        )
    file = io.BytesIO()
    extended = fastavro.parse_schema(extend_schema(schema, unknown))
    fastavro.writer(file, extended, records, codec=CODECS[compression])
    return file.getvalue()


def nullable(name: str, kind: Any) -> Record:
    """A nullable field with default null."""
    return {"name": name, "type": ["null", kind], "default": None}


def record_schema(path: str, fields: Sequence[tuple[str, Any] | Record]) -> Record:
    """The schema of a record, with the name that Paimon's own writer gives it.

    Args:
        path: The names of the fields that lead to it, each after a `_`; empty for the outermost.
        fields: Name and type of each, or the result of `nullable`.
    """
    described = [
        entry if isinstance(entry, dict) else {"name": entry[0], "type": entry[1]}
        for entry in fields
    ]
    name = f"org.apache.paimon.avro.generated.record{path}"
    return {"type": "record", "name": name, "fields": described}


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection: manifests become many objects, and none of them is garbage.

    This takes a sixth off the time to open a table of 100,000 files. Of two threads that are here
    at the same time, the first to leave enables it again for both.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
