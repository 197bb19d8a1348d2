"""Manifest lists and manifests: the data and delete files of a snapshot.

    manifest list   a record for each manifest: path, spec, sequence number, counts
    manifest        a record for each file: status, sequence number, `data_file`

Both are Avro files. Fields are looked up by id, as in Iceberg: writers spell some names
differently, and version 1 leaves many out. An entry without a sequence number or first row id
inherits it from its manifest.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from alcid.errors import FormatError
from alcid.formats.avro import read_records, short_name
from alcid.tables.iceberg.metadata.entries import METRICS
from alcid.tables.iceberg.metadata.schema import VOID, PartitionSpec, partition_names

_SUMMARIES: Final = "partitions"
_LIST_FIELDS: Final = {
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    504: "added_files_count",
    505: "existing_files_count",
    507: _SUMMARIES,
    515: "sequence_number",
    517: "content",
    519: "key_metadata",
    520: "first_row_id",
}
_SUMMARY_FIELDS: Final = {
    509: "contains_null",
    510: "lower_bound",
    511: "upper_bound",
}
_DATA_FILE: Final = "data_file"
_PARTITION: Final = "partition"
_ENTRY_FIELDS: Final = {0: "status", 2: _DATA_FILE, 3: "sequence_number"}
_COUNTS: Final = pa.map_(pa.int32(), pa.int64())
_BOUNDS: Final = pa.map_(pa.int32(), pa.binary())
_COLUMNS: Final = {
    134: ("content", pa.int32()),
    100: ("file_path", pa.string()),
    101: ("file_format", pa.string()),
    103: ("record_count", pa.int64()),
    104: ("file_size_in_bytes", pa.int64()),
    109: ("value_counts", _COUNTS),
    110: ("null_value_counts", _COUNTS),
    137: ("nan_value_counts", _COUNTS),
    125: ("lower_bounds", _BOUNDS),
    128: ("upper_bounds", _BOUNDS),
    131: ("key_metadata", pa.binary()),
    135: ("equality_ids", pa.list_(pa.int32())),
    140: ("sort_order_id", pa.int32()),
    142: ("first_row_id", pa.int64()),
    143: ("referenced_data_file", pa.string()),
    144: ("content_offset", pa.int64()),
    145: ("content_size_in_bytes", pa.int64()),
}
_FILE_FIELDS: Final = {number: name for number, (name, _) in _COLUMNS.items()} | {102: _PARTITION}
_ADDED, _DELETED = 1, 2
_PRIMITIVES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "time-micros": pa.time64("us"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
}

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """What a manifest list says of the values of one partition field in a manifest.

    Bounds are single values in binary, as in `entries`, and hold for values that are neither null
    nor NaN; None where there is none.
    """

    contains_null: bool
    lower: bytes | None
    upper: bytes | None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest, as listed in the manifest list of a snapshot."""

    path: str
    spec_id: int = 0
    content: int = 0
    """0 for data files, 1 for delete files."""
    sequence_number: int = 0
    live_files: int | None = None
    """The number of files that are not deleted; version 1 may leave it out."""
    is_encrypted: bool = False
    first_row_id: int | None = None
    length: int | None = None
    summaries: tuple[PartitionSummary | None, ...] | None = None
    """One for each field of the spec, None where it is damaged; None if there are none."""


def read_manifest_list(data: bytes, *, file: str) -> list[ManifestFile]:
    """The manifests of a snapshot.

    Args:
        data: The manifest list.
        file: Its name, for errors.

    Raises:
        FormatError: It is damaged.
    """
    manifests = []
    for record in read_records(data, file=file, as_schema=_ManifestSchema(_LIST_FIELDS).simplify)[
        1
    ]:
        added, existing = record.get("added_files_count"), record.get("existing_files_count")
        manifests.append(
            ManifestFile(
                _value(record, "manifest_path", str, file),
                _value(record, "partition_spec_id", int, file, 0),
                _value(record, "content", int, file, 0),
                _value(record, "sequence_number", int, file, 0),
                None if added is None or existing is None else added + existing,
                record.get("key_metadata") is not None,
                record.get("first_row_id"),
                record.get("manifest_length"),
                _summaries(record.get(_SUMMARIES)),
            )
        )
    return manifests


def _summaries(records: Any) -> tuple[PartitionSummary | None, ...] | None:
    """The summaries of a manifest; damaged ones are left out, since they only spare reads."""
    return tuple(map(_summary, records)) if isinstance(records, list) else None


def _summary(record: Any) -> PartitionSummary | None:
    if not isinstance(record, dict):
        return None
    contains_null = record.get("contains_null")
    lower, upper = record.get("lower_bound"), record.get("upper_bound")
    if not isinstance(contains_null, bool):
        return None
    if not all(bound is None or isinstance(bound, bytes) for bound in (lower, upper)):
        return None
    return PartitionSummary(contains_null, lower, upper)


_BATCH: Final = 1024  # records that are Python objects at a time: 7 KB each with five columns


@dataclass(frozen=True, slots=True, eq=False)
class ManifestEntries:
    """The live files of a manifest."""

    columns: pa.Table
    """The columns of `Entries` except for the partition."""
    partitions: Mapping[str, pa.Array]
    """The partition values by the names of `partition_names`."""

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        arrays = [self.columns, *self.partitions.values()]
        return sum(int(values.nbytes) for values in arrays)

    def select(self, names: Sequence[str]) -> ManifestEntries:
        """Some of the columns, without partition values."""
        return ManifestEntries(self.columns.select(names), {})


def read_manifest(
    manifest: ManifestFile,
    data: bytes,
    specs: Mapping[int, PartitionSpec],
    metrics: Collection[int] | None = None,
) -> ManifestEntries:
    """The live files of a manifest.

    Args:
        manifest: The manifest.
        data: Its bytes.
        specs: The partition specs of the table.
        metrics: The field ids of the columns whose metrics are read; None: of all columns. Those
            of delete files are always read.

    Raises:
        FormatError: The manifest is damaged.
    """
    names, schema = partition_names(specs), _ManifestSchema(_ENTRY_FIELDS)
    metrics = None if manifest.content else metrics
    without_metrics = metrics is not None and not metrics
    live = _live_files(data, schema, manifest, schema.without_metrics if without_metrics else None)
    partitions: dict[str, list[pa.Array]] = {}
    tables = []
    while batch := list(islice(live, _BATCH)):
        sequence_numbers, files = zip(*batch, strict=True)
        if without_metrics and any(file.get("content") for file in files):
            return read_manifest(manifest, data, specs)  # a delete file among data files
        columns: dict[str, pa.Array] = {
            "sequence_number": pa.array(sequence_numbers, pa.int64()),
            "spec_id": pa.array([manifest.spec_id] * len(files), pa.int32()),
        }
        for name, kind in _COLUMNS.values():
            columns[name] = _array(name, [file.get(name) for file in files], kind, metrics)
        columns["content"] = columns["content"].fill_null(0)  # version 1 has data files only
        tables.append(pa.table(columns))
        partition_values = [file.get(_PARTITION) or {} for file in files]
        for key, number, kind in _partition_fields(schema, specs.get(manifest.spec_id)):
            partition_name = names.get((manifest.spec_id, number))
            if partition_name is not None:
                values = [partition.get(key) for partition in partition_values]
                array = _partition_array(values, kind, manifest.path)
                partitions.setdefault(partition_name, []).append(array)
    return ManifestEntries(
        pa.concat_tables([_SCHEMA.empty_table(), *tables]).combine_chunks(),
        {name: pa.concat_arrays(arrays) for name, arrays in partitions.items()},
    )


_SCHEMA: Final = pa.schema(
    [
        ("sequence_number", pa.int64()),
        ("spec_id", pa.int32()),
        *((name, kind) for name, kind in _COLUMNS.values()),
    ]
)


def join_manifests(manifests: Iterable[ManifestEntries]) -> pa.Table:
    """The files of manifests, with the columns of `Entries`."""
    count, tables = 0, [_SCHEMA.empty_table()]
    partitions: dict[str, list[tuple[int, pa.Array]]] = {}
    for manifest in manifests:
        tables.append(manifest.columns)
        for name, values in manifest.partitions.items():
            partitions.setdefault(name, []).append((count, values))
        count += len(manifest.columns)
    return pa.concat_tables(tables).append_column(_PARTITION, _partition_structs(partitions, count))


def read_manifests(
    manifests: Iterable[tuple[ManifestFile, bytes]], specs: Mapping[int, PartitionSpec]
) -> pa.Table:
    """The live files of manifests, with the columns of `Entries`.

    Args:
        manifests: Manifests with their bytes.
        specs: The partition specs of the table.

    Raises:
        FormatError: A manifest is damaged.
    """
    return join_manifests(read_manifest(manifest, data, specs) for manifest, data in manifests)


def _live_files(
    data: bytes,
    schema: _ManifestSchema,
    manifest: ManifestFile,
    read_as: Callable[[Any], Any] | None = None,
) -> Iterator[tuple[int, Record]]:
    """The sequence number and the `data_file` of each entry that is not deleted."""
    next_row_id = manifest.first_row_id
    _, entries = read_records(data, file=manifest.path, as_schema=schema.simplify, project=read_as)
    for entry in entries:
        status = _value(entry, "status", int, manifest.path)
        if status == _DELETED:
            continue
        sequence_number = entry.get("sequence_number")
        if sequence_number is None:
            # Version 1 has none, which counts as 0; in later versions added files inherit it.
            if manifest.sequence_number and status != _ADDED:
                raise FormatError(
                    "sequence_number of a file that an older commit added",
                    file=manifest.path,
                    found="null",
                    expected="a number",
                )
            sequence_number = manifest.sequence_number
        file = _value(entry, _DATA_FILE, dict, manifest.path)
        if next_row_id is None:
            file["first_row_id"] = None
        elif file.get("first_row_id") is None:
            file["first_row_id"] = next_row_id
            next_row_id += _value(file, "record_count", int, manifest.path)
        yield sequence_number, file


def _value(record: Record, name: str, kind: type, file: str, default: Any = None) -> Any:
    value = record.get(name)
    value = default if value is None else value
    if type(value) is not kind:
        shown = "null" if value is None else repr(value)[:40]
        raise FormatError(name, file=file, found=shown, expected=f"a value of {kind.__name__}")
    return value


@dataclass(slots=True)
class _ManifestSchema:
    """Rewrites the schema of an Avro file for reading.

    Fields with an id get the names of this module. Logical types are dropped, since dates and
    timestamps may exceed the range of Python's types. Records without fields, such as the partition
    of an unpartitioned table, take no bytes and are left out.
    """

    names: Mapping[int, str]
    """The fields of the outermost record, by id."""
    partition: dict[str, tuple[int | None, Any]] = field(default_factory=dict)
    """The id and type of each partition field, by its name in records."""

    def simplify(self, schema: Any) -> Any:
        """The schema to read with."""
        return self._record(schema, self.names) if isinstance(schema, dict) else schema

    @staticmethod
    def without_metrics(schema: Any) -> Any:
        """The same without the metrics of columns.

        None, which stands for all fields, if other fields refer to types that metrics define.
        """
        match schema:
            case {"fields": [*fields]}:
                position = [field.get("name") for field in fields].index(_DATA_FILE)
            case _:
                return None
        match fields[position]:
            case {"type": {"type": "record", "fields": [*inner]} as data_file}:
                left = [entry for entry in inner if entry["name"] not in METRICS]
                dropped = [entry for entry in inner if entry["name"] in METRICS]
            case _:
                return None
        fields[position] = {"name": _DATA_FILE, "type": {**data_file, "fields": left}}
        if _referred_types(fields) & _defined_types(dropped):
            return None
        return {**schema, "fields": fields}

    def _record(self, record: Record, names: Mapping[int, str] | None) -> Record:
        fields = []
        record_fields = record.get("fields")
        for record_field in record_fields if isinstance(record_fields, list) else ():
            if not isinstance(record_field, dict):
                return record  # damaged, which its reader reports
            name: Any = record_field.get("name")
            if names is not None:
                name = names.get(record_field.get("field-id", -1), name)
            if name == _PARTITION and names is _FILE_FIELDS:
                kind = self._partition_type(record_field.get("type"))
            else:
                inner = _INNER_FIELDS.get((id(names), name))
                kind = self._type(record_field.get("type"), inner)
            if kind is not None:
                fields.append({"name": name, "type": kind})
        return {"type": "record", "name": record.get("name"), "fields": fields}

    def _type(self, kind: Any, names: Mapping[int, str] | None) -> Any:
        """A type without logical types; None if its values take no bytes."""
        match kind:
            case list():
                return [self._type(branch, names) for branch in kind]
            case {"type": "record"}:
                rewritten = self._record(kind, names)
                return rewritten if rewritten["fields"] else None
            case {"type": "array", "items": items}:
                within = names if names is _SUMMARY_FIELDS else None
                return {"type": "array", "items": self._type(items, within)}
            case {"type": "fixed"}:
                return {"type": "fixed", "name": kind.get("name"), "size": kind.get("size")}
            case {"type": str(name)} if name in _PRIMITIVES:
                return name
        return kind

    def _partition_type(self, kind: Any) -> Any:
        if not isinstance(kind, dict) or not isinstance(kind.get("fields"), list):
            return kind
        fields = []
        for position, partition_field in enumerate(kind["fields"]):
            if not isinstance(partition_field, dict):
                return kind
            name = f"p{position}"
            self.partition[name] = partition_field.get("field-id"), partition_field.get("type")
            fields.append({"name": name, "type": self._type(partition_field.get("type"), None)})
        return {"type": "record", "name": kind.get("name"), "fields": fields} if fields else None


_INNER_FIELDS: Final = {
    (id(_ENTRY_FIELDS), _DATA_FILE): _FILE_FIELDS,
    (id(_LIST_FIELDS), _SUMMARIES): _SUMMARY_FIELDS,
}
"""The ids within a field, by the ids around it and its name."""


def _defined_types(fields: Any) -> set[str]:
    """The names of the types that fields define."""
    match fields:
        case list():
            return set().union(*map(_defined_types, fields))
        case {"type": "record" | "error" | "fixed" | "enum", "name": name}:
            return {short_name(name), *_defined_types(fields.get("fields"))}
        case {"type": kind}:
            parts = kind, fields.get("items"), fields.get("values")
            return set().union(*map(_defined_types, parts))
    return set()


def _referred_types(fields: Any) -> set[str]:
    """The names of the types that fields have, those of primitive ones among them."""
    match fields:
        case str():
            return {short_name(fields)}
        case list():
            return set().union(*map(_referred_types, fields))
        case dict():
            parts = [fields.get(key) for key in ("type", "items", "values", "fields")]
            return set().union(*map(_referred_types, parts))
    return set()


def _partition_fields(
    schema: _ManifestSchema, spec: PartitionSpec | None
) -> Iterator[tuple[str, int, Any]]:
    """The name in records, id and type of each partition field."""
    spec_fields = () if spec is None else spec.fields
    is_void = {
        field.field_id for field in spec_fields if field.transform == VOID
    }  # null, of any type
    for position, (name, (number, kind)) in enumerate(schema.partition.items()):
        # The oldest manifests have no ids, but the fields in the order of the spec.
        by_position = spec_fields[position].field_id if position < len(spec_fields) else None
        field_id = by_position if number is None else number
        if field_id is not None and field_id not in is_void:
            yield name, field_id, kind


def _array(name: str, values: list[Any], kind: Any, metrics: Collection[int] | None) -> pa.Array:
    try:
        return _map_array(values, kind, metrics) if types.is_map(kind) else pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, KeyError, ValueError) as error:
        raise FormatError(f"{name} of a manifest: {error}", file="manifests") from None


def _map_array(
    values: Sequence[Sequence[Record] | None], kind: Any, keys: Collection[int] | None
) -> pa.Array:
    """Maps, which Iceberg stores as arrays of records, since keys of Avro maps are strings.

    Only entries of some keys are left in them, if these are given.
    """
    if keys is not None:
        values = [
            None if records is None else [entry for entry in records if entry["key"] in keys]
            for records in values
        ]
    lengths = np.array([len(records or ()) for records in values], np.int64)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    entries = [entry for records in values if records for entry in records]
    missing = [records is None for records in values]
    return pa.MapArray.from_arrays(
        pa.array(offsets, mask=np.array([*missing, False], bool)),
        pa.array([entry["key"] for entry in entries], kind.key_type),
        pa.array([entry["value"] for entry in entries], kind.item_type),
    )


def _partition_array(values: list[Any], kind: Any, file: str) -> pa.Array:
    """Partition values of a manifest, of the type in its schema."""
    [kind] = [branch for branch in kind if branch != "null"] if isinstance(kind, list) else [kind]
    described = kind if isinstance(kind, dict) else {}
    stored, logical = described.get("type", kind), described.get("logicalType")
    try:
        if logical == "decimal":
            precision, scale = described["precision"], described.get("scale", 0)
            numbers = [
                None
                if value is None
                else Decimal(f"{int.from_bytes(value, 'big', signed=True)}E{-scale}")
                for value in values
            ]
            return pa.array(numbers, pa.decimal128(precision, scale))
        if logical == "uuid" and stored == "fixed":
            texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in values]
            return pa.array(texts, pa.string())
        plain = pa.array(values, _PRIMITIVES[stored])
        if logical not in _LOGICAL:
            return plain
        timestamps = plain.view(_LOGICAL[logical])
        return (
            timestamps.cast(pa.timestamp(timestamps.type.unit, "UTC"))
            if described.get("adjust-to-utc")
            else timestamps
        )
    except (pa.ArrowException, OverflowError, TypeError, KeyError, ValueError) as error:
        raise FormatError(f"partition values of {kind!r:.60}: {error}", file=file) from None


def _partition_structs(
    partitions: Mapping[str, Sequence[tuple[int, pa.Array]]], count: int
) -> pa.Array:
    """The partition structs of all files; fields are null in manifests without them."""
    if not partitions:
        return pa.array([{}] * count, pa.struct([]))
    columns = []
    for name, parts in partitions.items():
        kind = parts[0][1].type
        for _, values in parts[1:]:
            kind = _wider(name, kind, values.type)
        pieces, end = [], 0
        for first, values in parts:
            pieces += [pa.nulls(first - end, kind), values.cast(kind)]
            end = first + len(values)
        columns.append(pa.concat_arrays([*pieces, pa.nulls(count - end, kind)]))
    return pa.StructArray.from_arrays(columns, [*partitions])


def _wider(name: str, first: Any, second: Any) -> Any:
    """The wider of two types, since a column may have been promoted."""
    if first == second:
        return first
    for narrow, wide in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64())):
        if {first, second} == {narrow, wide}:
            return wide
    if types.is_decimal(first) and types.is_decimal(second) and first.scale == second.scale:
        return max(first, second, key=lambda decimal: decimal.precision)
    raise FormatError(f"partition field {name}", file="manifests", found=second, expected=first)
