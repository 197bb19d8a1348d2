"""Fields that only a newer Paimon knows: they are read, and written again unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alcid.errors import FormatError, UnsupportedError
from alcid.tables.paimon.metadata.manifest import (
    DELETE,
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from alcid.tables.paimon.metadata.table_state import read_index_manifest, write_index_manifest
from tests.bad.avro import container
from tests.golden.paimon_tables import unpack_table
from tests.tables.paimon.newer_fields import add_fields, avro_records, find

PAIR = {
    "type": "record",
    "name": "pair",
    "namespace": "org.newer",
    "fields": [{"name": "name", "type": "string"}, {"name": "size", "type": ["null", "long"]}],
}
COLOR = {"type": "enum", "name": "color", "symbols": ["RED", "BLUE"]}
TYPES: dict[str, tuple[Any, Any]] = {
    "text": ("string", "zoë"),
    "bytes": (["null", "bytes"], b"\x00\xff"),
    "long": ("long", -(1 << 60)),
    "texts": ({"type": "array", "items": "string"}, ["a", "b"]),
    "map": ({"type": "map", "values": ["null", "int"]}, {"x": 1, "y": None}),
    "pair": (PAIR, {"name": "n", "size": None}),
    "pairs": (["null", {"type": "array", "items": PAIR}], [{"name": "n", "size": 3}]),
    "enum": (COLOR, "BLUE"),
    "fixed": ({"type": "fixed", "name": "four", "size": 4}, b"1234"),
    "choice": (["null", "boolean", "string"], "either"),
}
LEVELS: dict[str, tuple[Any, Any, list[tuple[str, ...]]]] = {
    "manifest": (
        read_manifest,
        write_manifest,
        [(), ("_FILE",), ("_FILE", "_VALUE_STATS"), ("_FILE", "_KEY_STATS")],
    ),
    "manifest-list": (read_manifest_list, write_manifest_list, [(), ("_PARTITION_STATS",)]),
    "index-manifest": (
        read_index_manifest,
        write_index_manifest,
        [(), ("_DELETIONS_VECTORS_RANGES", "*")],
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A file of each kind, with records."""
    table = unpack_table("vectors_32", tmp_path_factory.mktemp("tables"))
    contents: dict[str, bytes] = {}
    for path in sorted((table / "manifest").iterdir()):
        kind = path.name.rpartition("-")[0][:-37].rstrip("-")
        if avro_records(path.read_bytes()):
            contents[kind] = path.read_bytes()
    assert contents.keys() == LEVELS.keys()
    return contents


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind", LEVELS)
def test_a_field_of_any_type_is_written_again(
    files: dict[str, bytes], kind: str, name: str
) -> None:
    read, write, levels = LEVELS[kind]
    for level in levels:
        path = (*level, "_NEW")
        newer = add_fields(files[kind], {path: TYPES[name]})
        parsed = read(newer, file="m")
        again = write(parsed, "zstd")
        assert [find(record, path) for record in avro_records(again)] == [
            find(record, path) for record in avro_records(newer)
        ]
        assert read(again, file="m") == parsed
        assert {
            f for record in parsed for f in (*record.unknown, *_of_file(record)) if f.path == path
        }


def _of_file(record: Any) -> Any:
    return record.file.unknown if hasattr(record, "file") else ()


def test_several_at_once_and_named_types_that_are_used_twice(files: dict[str, bytes]) -> None:
    fields = {
        ("_FILE", "_FIRST"): (PAIR, {"name": "n", "size": 1}),
        ("_SECOND",): ("org.newer.pair", {"name": "m", "size": 2}),
        ("_THIRD",): (["null", "org.newer.pair"], {"name": "o", "size": 3}),
    }
    newer = add_fields(files["manifest"], fields)
    again = write_manifest(read_manifest(newer, file="m"), "zstd")
    for before, after in zip(avro_records(newer), avro_records(again), strict=True):
        assert {**after, "_FILE": {**after["_FILE"], **before["_FILE"]}} == after | before


def test_records_without_the_field_say_nothing_of_it(files: dict[str, bytes]) -> None:
    newer = add_fields(files["manifest"], {("_FILE", "_NEW"): ("int", 7)})
    first, second = read_manifest(newer, file="m")[0], read_manifest(files["manifest"], file="m")[0]
    again = write_manifest([first, second], "zstd")
    assert [record["_FILE"]["_NEW"] for record in avro_records(again)] == [7, None]
    assert read_manifest(again, file="m") == [first, second]
    assert "_NEW" not in avro_records(write_manifest([second], "zstd"))[0]["_FILE"]


def test_a_file_that_goes_or_gets_an_index_keeps_them(files: dict[str, bytes]) -> None:
    newer = add_fields(files["manifest"], {("_FILE", "_NEW"): ("int", 7), ("_N",): ("int", 8)})
    entry = read_manifest(newer, file="m")[0]
    indexed = entry.with_file(replace(entry.file, extra_files=("a.index",)))
    written = avro_records(write_manifest([entry.deleted(), indexed], "zstd"))
    assert [(record["_N"], record["_FILE"]["_NEW"]) for record in written] == [(8, 7), (8, 7)]
    assert [record["_KIND"] for record in written] == [DELETE, 0]


def test_items_of_an_array_keep_what_they_said_when_others_go(files: dict[str, bytes]) -> None:
    path = ("_DELETIONS_VECTORS_RANGES", "*", "_NEW")
    name_of = ("string", lambda item: f"of {item['f0']}")
    entry = read_index_manifest(add_fields(files["index-manifest"], {path: name_of}), file="m")[0]
    assert entry.ranges is not None
    assert len(entry.ranges) > 1
    last = replace(entry, ranges=entry.ranges[-1:])
    (record,) = avro_records(write_index_manifest([last], "zstd"))
    assert find(record, path) == [f"of {entry.ranges[-1].data_file}"]


def test_a_field_of_two_types_is_refused(files: dict[str, bytes]) -> None:
    first, second = (
        read_manifest(add_fields(files["manifest"], {("_FILE", "_NEW"): kind}), file="m")[0]
        for kind in (("int", 7), ("string", "seven"))
    )
    with pytest.raises(UnsupportedError, match=r"_FILE\._NEW: written by a newer Paimon, and is"):
        write_manifest([first, second], "zstd")


def test_a_record_of_a_newer_version_is_refused(files: dict[str, bytes]) -> None:
    records = add_fields(files["manifest"], {})
    assert len(read_manifest(records, file="m")) > 0
    for kind, (read, _, _) in LEVELS.items():
        newer = add_fields(
            files[kind], {("_X",): ("int", lambda record: record.update(_VERSION=9) or 1)}
        )
        with pytest.raises(FormatError, match=r"version of a .*: found 9, expected [12]"):
            read(newer, file="m")


def test_a_type_of_too_many_types_is_refused() -> None:
    kind: Any = "int"
    for number in range(20):
        fields = [{"name": name, "type": kind} for name in ("a", "b")]
        if number:
            fields[1]["type"] = f"r{number - 1}"
        kind = {"type": "record", "name": f"r{number}", "fields": fields}
    schema = {"type": "record", "name": "r", "fields": [{"name": "_NEW", "type": kind}]}
    with pytest.raises(FormatError, match="_NEW: too many types"):
        read_manifest(container(schema), file="m")


def test_manifests_of_java_have_no_unknown_fields(tmp_path: Path) -> None:
    for version in ("1.4.2", "2.0.0"):
        table = unpack_table("vectors_32", tmp_path / version, version)
        for path in (table / "manifest").glob("manifest-*"):
            if not path.name.startswith("manifest-list"):
                entries = read_manifest(path.read_bytes(), file=path.name)
                assert [entry.unknown + entry.file.unknown for entry in entries] == [()] * len(
                    entries
                )
