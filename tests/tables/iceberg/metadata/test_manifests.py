"""Manifest lists and manifests of other writers, and damaged ones."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alcid.errors import FormatError
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.manifests import ManifestFile, read_manifest_list, read_manifests
from alcid.tables.iceberg.metadata.schema import PartitionField, PartitionSpec

Record = dict[str, Any]
NO_SPECS = {0: PartitionSpec(0, ())}


def field(name: str, kind: Any, number: int | None = None, *, optional: bool = False) -> Record:
    made: Record = {"name": name, "type": ["null", kind] if optional else kind}
    return made if number is None else made | {"field-id": number}


def counts(name: str, number: int, value: str = "long") -> Record:
    """A map of field ids, which is an array of records."""
    fields = [field("key", "int", number + 1), field("value", value, number + 2)]
    entry = {"type": "record", "name": f"k{number}", "fields": fields}
    return field(name, {"type": "array", "logicalType": "map", "items": entry}, number)


def container(fields: Sequence[Record], records: Sequence[Record]) -> bytes:
    schema = {"type": "record", "name": "r", "fields": list(fields)}
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec="deflate")
    return file.getvalue()


def manifest(
    records: Sequence[Record],
    *,
    partition: Sequence[Record] = (),
    entry: Sequence[Record] = (),
    more: Sequence[Record] = (),
) -> bytes:
    """A manifest of version 1, with additional fields."""
    parts = {"type": "record", "name": "r102", "fields": list(partition)}
    data_file = [
        field("file_path", "string", 100),
        field("file_format", "string", 101),
        field("partition", parts, 102),
        field("record_count", "long", 103),
        field("file_size_in_bytes", "long", 104),
        *more,
    ]
    inner = {"type": "record", "name": "r2", "fields": data_file}
    top = [field("status", "int", 0), *entry, field("data_file", inner, 2)]
    return container(top, records)


def file(path: str, status: int = 1, partition: Record | None = None, **more: Any) -> Record:
    data_file = {"file_path": path, "file_format": "parquet", "partition": partition or {}}
    sizes = {"record_count": 10, "file_size_in_bytes": 100}
    return {"status": status, "data_file": {**data_file, **sizes, **more}}


def test_a_version_1_list_without_counts_contents_and_sequence_numbers() -> None:
    fields = [
        field("manifest_path", "string", 500),
        field("partition_spec_id", "int", 502),
        field("added_data_files_count", "int", 504, optional=True),
        field("existing_files_count", "int", 505, optional=True),
    ]
    records = [
        {"manifest_path": "a", "partition_spec_id": 3},
        {
            "manifest_path": "b",
            "partition_spec_id": 0,
            "added_data_files_count": 2,
            "existing_files_count": 5,
        },
    ]
    assert read_manifest_list(container(fields, records), file="list") == [
        ManifestFile("a", 3),
        ManifestFile("b", 0, live_files=7),
    ]


def test_fields_without_ids_go_by_their_names() -> None:
    fields = [field("manifest_path", "string"), field("content", "int"), field("other", "string")]
    records = [{"manifest_path": "a", "content": 1, "other": "x"}]
    assert read_manifest_list(container(fields, records), file="list") == [
        ManifestFile("a", content=1)
    ]


def test_a_list_says_what_is_encrypted_and_the_first_row_id() -> None:
    fields = [
        field("manifest_path", "string", 500),
        field("sequence_number", "long", 515),
        field("key", "bytes", 519, optional=True),
        field("first", "long", 520, optional=True),
    ]
    records = [{"manifest_path": "a", "sequence_number": 4, "key": b"k", "first": 17}]
    [manifest_file] = read_manifest_list(container(fields, records), file="list")
    assert manifest_file == ManifestFile("a", sequence_number=4, is_encrypted=True, first_row_id=17)


def test_the_entries_of_a_version_1_manifest() -> None:
    bounds = [counts("value_counts", 109), counts("lower_bounds", 125, "bytes")]
    data = manifest(
        [
            file("b", value_counts=[{"key": 7, "value": 9}], lower_bounds=[]),
            file("gone", 2, value_counts=[], lower_bounds=[]),
            file("a", 0, value_counts=[], lower_bounds=[{"key": 7, "value": b"x"}]),
        ],
        more=bounds,
    )
    entry_table = Entries.of(read_manifests([(ManifestFile("m"), data)], NO_SPECS)).data
    assert entry_table["file_path"].to_pylist() == ["a", "b"]
    assert entry_table["sequence_number"].to_pylist() == [0, 0]
    assert entry_table["content"].to_pylist() == [0, 0]
    assert entry_table["value_counts"].to_pylist() == [[], [(7, 9)]]
    assert entry_table["lower_bounds"].to_pylist() == [[(7, b"x")], []]
    assert entry_table["upper_bounds"].to_pylist() == [None, None]
    assert entry_table["partition"].to_pylist() == [{}, {}]


def test_added_files_inherit_the_sequence_number_and_row_ids() -> None:
    entry = [field("sequence_number", "long", 3, optional=True)]
    more = [
        field("content", "int", 134),
        field("first_row_id", "long", 142, optional=True),
        field("referenced_data_file", "string", 143, optional=True),
        field("content_offset", "long", 144, optional=True),
        field("content_size_in_bytes", "long", 145, optional=True),
    ]
    records = [
        file("a", content=0) | {"sequence_number": None},
        file("b", 0, content=0, first_row_id=3) | {"sequence_number": 2},
        file("c", content=0) | {"sequence_number": None},
    ]
    vector = file(
        *("v", 1),
        content=1,
        referenced_data_file="a",
        content_offset=4,
        content_size_in_bytes=50,
    )
    lists = [
        (
            ManifestFile("m", sequence_number=5, first_row_id=100),
            manifest(records, entry=entry, more=more),
        ),
        (
            ManifestFile("n", sequence_number=6, content=1),
            manifest([vector | {"sequence_number": None}], entry=entry, more=more),
        ),
    ]
    entries = Entries.of(read_manifests(lists, NO_SPECS))
    assert entries.data["sequence_number"].to_pylist() == [5, 2, 5]
    assert entries.data["first_row_id"].to_pylist() == [100, 3, 110]
    assert entries.deletes["sequence_number"].to_pylist() == [6]
    assert entries.deletes["referenced_data_file"].to_pylist() == ["a"]
    assert entries.deletes["content_offset"].to_pylist() == [4]
    assert entries.deletes["content_size_in_bytes"].to_pylist() == [50]


def test_an_older_file_without_a_sequence_number_is_damage() -> None:
    entry = [field("sequence_number", "long", 3, optional=True)]
    data = manifest([file("a", 0) | {"sequence_number": None}], entry=entry)
    with pytest.raises(FormatError, match="m: sequence_number of a file that an older commit"):
        read_manifests([(ManifestFile("m", sequence_number=5), data)], NO_SPECS)


def fixed(size: int, **more: Any) -> Record:
    return {"type": "fixed", "name": f"fixed_{size}", "size": size, **more}


@pytest.mark.parametrize(
    ("kind", "stored", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, 19_000, date(2022, 1, 8)),
        (fixed(3, logicalType="decimal", precision=5, scale=2), b"\xff\xff\xfe", Decimal("-0.02")),
        ("boolean", True, True),
        ("float", 0.5, 0.5),
        (fixed(2), b"ab", b"ab"),
        (
            fixed(16, logicalType="uuid"),
            bytes(15) + b"\x07",
            f"{'0' * 8}-0000-0000-0000-{'0' * 11}7",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
            1_000_000,
            datetime(1970, 1, 1, 0, 0, 1),
        ),
    ],
)
def test_partition_values_of_every_type(kind: Any, stored: Any, expected: object) -> None:
    spec = PartitionSpec(4, (PartitionField(1, 1000, "p", "identity"),))
    data = manifest(
        [file("a", partition={"p_x20": stored}), file("b", partition={"p_x20": None})],
        partition=[field("p_x20", kind, 1000, optional=True)],
    )
    table = read_manifests([(ManifestFile("m", 4), data)], {4: spec})
    assert table["partition"].to_pylist() == [{"p": expected}, {"p": None}]
    assert table["spec_id"].to_pylist() == [4, 4]


def test_values_beyond_the_types_of_python_stay_as_they_are() -> None:
    kind = {"type": "int", "logicalType": "date"}
    data = manifest([file("a", partition={"p": 5_000_000})], partition=[field("p", kind, 1000)])
    spec = PartitionSpec(0, (PartitionField(1, 1000, "p", "identity"),))
    partition = read_manifests([(ManifestFile("m"), data)], {0: spec})["partition"].combine_chunks()
    assert partition.field("p").type == pa.date32()
    assert partition.field("p").cast(pa.int32()).to_pylist() == [5_000_000]


def test_fields_with_the_same_name_or_id_are_distinguished() -> None:
    """Version 1 assigned new ids, and a field got the name of a dropped one."""
    specs = {
        0: PartitionSpec(0, (PartitionField(1, 1000, "p", "truncate[2]"),)),
        1: PartitionSpec(1, (PartitionField(2, 1000, "q", "identity"),)),
        2: PartitionSpec(2, (PartitionField(1, 1001, "p", "truncate[4]"),)),
        3: PartitionSpec(3, (PartitionField(1, 1001, "r", "void"),)),
    }
    kinds = {0: (1000, "string", "ab"), 1: (1000, "int", 5), 2: (1001, "string", "abcd")}
    lists = [
        (
            ManifestFile(f"m{spec}", spec),
            manifest(
                [file(f"{spec}", partition={"x": value})], partition=[field("x", kind, number)]
            ),
        )
        for spec, (number, kind, value) in kinds.items()
    ]
    void = manifest([file("3", partition={"x": 1.5})], partition=[field("x", "double", 1001)])
    table = read_manifests([*lists, (ManifestFile("m3", 3), void)], specs)
    nothing = {"p": None, "q": None, "r": None}
    assert table["partition"].to_pylist() == [
        nothing | {"p": "ab"},
        nothing | {"q": 5},
        nothing | {"r": "abcd"},
        nothing,
    ]


def test_a_widened_column_and_fields_without_ids() -> None:
    spec = {0: PartitionSpec(0, (PartitionField(1, 1000, "p", "identity"),))}
    narrow = manifest([file("a", partition={"p": 1})], partition=[field("p", "int")])
    wide = manifest([file("b", partition={"p": 1 << 40})], partition=[field("p", "long", 1000)])
    lists = [(ManifestFile("m"), narrow), (ManifestFile("n"), wide)]
    table = read_manifests(lists, spec)
    assert table["partition"].to_pylist() == [{"p": 1}, {"p": 1 << 40}]
    text = manifest([file("c", partition={"p": "x"})], partition=[field("p", "string", 1000)])
    with pytest.raises(FormatError, match="partition field p: found string, expected int32"):
        read_manifests([lists[0], (ManifestFile("o"), text)], spec)


def test_every_cut_and_every_changed_byte_is_an_error_or_the_same_files() -> None:
    data = manifest([file(f"file-{number}") for number in range(3)])
    whole = read_manifests([(ManifestFile("m"), data)], NO_SPECS)
    for end in range(0, len(data), 7):
        with pytest.raises(FormatError, match="m: "):
            read_manifests([(ManifestFile("m"), data[:end])], NO_SPECS)
    for position in range(0, len(data), 5):
        damaged = data[:position] + bytes([data[position] ^ 0x15]) + data[position + 1 :]
        try:
            table = read_manifests([(ManifestFile("m"), damaged)], NO_SPECS)
        except FormatError:
            continue
        assert table.schema == whole.schema


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([{"path": "a"}], "list: manifest_path: found null, expected a value of str"),
        ([], None),
    ],
)
def test_a_list_without_paths(records: list[Record], problem: str | None) -> None:
    data = container([field("path", "string")], records)
    if problem is None:
        assert read_manifest_list(data, file="list") == []
        return
    with pytest.raises(FormatError, match=problem):
        read_manifest_list(data, file="list")
