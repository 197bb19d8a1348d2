"""Manifests, their lists and index manifests: read and written again, also damaged ones."""

from __future__ import annotations

import io
import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import orc

from alcid.errors import AlcidError, FormatError
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    DataFile,
    ManifestEntry,
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS, RowStats, pack_rows
from alcid.tables.paimon.metadata.table_state import read_index_manifest, write_index_manifest
from alcid.types import DataType
from tests.bad.avro import container
from tests.golden.paimon_tables import table_names, unpack_table

KINDS: dict[str, tuple[Any, Any]] = {
    "index-manifest-": (read_index_manifest, write_index_manifest),
    "manifest-list-": (read_manifest_list, write_manifest_list),
    "manifest-": (read_manifest, write_manifest),
}


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("tables")
    tables = [
        unpack_table(name, folder / version, version)
        for version in ("1.4.2", "2.0.0")
        for name in table_names(version)
    ]
    return sorted(path for table in tables for path in (table / "manifest").iterdir())


def kind_of(path: Path) -> tuple[Any, Any]:
    return next(kind for prefix, kind in KINDS.items() if path.name.startswith(prefix))


def records(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def test_what_java_wrote_is_written_with_the_same_records(manifests: list[Path]) -> None:
    assert len(manifests) > 100
    for path in manifests:
        read, write = kind_of(path)
        data = path.read_bytes()
        again = records(write(read(data, file=path.name), "zstd"))
        written = records(data)
        for record, before in zip(again, written, strict=True):
            assert {name: record[name] for name in before} == before
            assert all(record[name] is None for name in record.keys() - before.keys())


@pytest.mark.parametrize("compression", ["zstd", "none", "deflate"])
def test_any_compression(manifests: list[Path], compression: str) -> None:
    path = next(path for path in manifests if kind_of(path)[0] is read_manifest)
    entries = read_manifest(path.read_bytes(), file="m")
    assert read_manifest(write_manifest(entries, compression), file="m") == entries


def test_damage_gives_records_or_an_alcid_error(manifests: list[Path]) -> None:
    chosen = random.Random(7)
    for path in chosen.sample(manifests, 25):
        read, _ = kind_of(path)
        data = path.read_bytes()
        for _ in range(80):
            damaged = bytearray(data)
            if chosen.random() < 0.3:
                del damaged[chosen.randrange(len(data)) :]
            else:
                damaged[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
            with suppress(AlcidError):
                read(bytes(damaged), file=path.name)


def test_not_an_avro_file() -> None:
    with pytest.raises(FormatError) as raised:
        read_manifest(b"PAR1" + bytes(50), file="m")
    assert str(raised.value) == ("m: no Avro file at offset 0: found b'PAR1', expected b'Obj\\x01'")


def arrow_type(kind: Any) -> Any:
    """The type that Java gives to a field of a manifest in ORC, derived from its type in Avro."""
    match kind:
        case ["null", inner] | {"type": ["null", inner]}:
            return arrow_type(inner)
        case {"type": "record", "fields": fields}:
            return pa.struct([(field["name"], arrow_type(field["type"])) for field in fields])
        case {"type": "array", "items": item}:
            return pa.list_(arrow_type(item))
        case {"logicalType": "timestamp-millis"}:
            return pa.timestamp("ns")
    return {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "bytes": pa.binary()}[
        kind
    ]


def as_orc(data: bytes) -> bytes:
    """The records of an Avro file as an ORC file, which Arrow writes."""
    schema = fastavro.reader(io.BytesIO(data)).writer_schema
    rows = pa.Table.from_struct_array(pa.array(records(data), arrow_type(schema)))
    sink = io.BytesIO()
    orc.write_table(rows, sink, compression="zstd")
    return sink.getvalue()


def test_records_in_orc_mean_what_they_mean_in_avro(manifests: list[Path]) -> None:
    for path in manifests[::5]:
        read, _ = kind_of(path)
        data = path.read_bytes()
        assert read(as_orc(data), file=path.name) == read(data, file=path.name)


def test_damage_to_orc_is_named(manifests: list[Path]) -> None:
    path = next(path for path in manifests if kind_of(path)[0] is read_manifest)
    data = as_orc(path.read_bytes())
    with pytest.raises(FormatError, match="manifest-7"):
        read_manifest(data[:-20], file="manifest-7")
    with pytest.raises(FormatError, match=r"manifest-7.*3 bytes"):
        read_manifest(data[:3], file="manifest-7")
    many = io.BytesIO()
    orc.write_table(pa.table({"_KIND": np.zeros(1_000_000, np.int8)}), many, compression="zstd")
    assert len(many.getvalue()) < 100_000
    with pytest.raises(FormatError, match=r"records of an ORC manifest.*1000000"):
        read_manifest(many.getvalue(), file="manifest-7")


def test_sparse_wide_entries_of_one_block_are_read() -> None:
    """As Java writes them: thousands of files in a tiny block."""
    columns, files = 300, 1500
    packed = pack_rows([pa.nulls(1)] * columns, [DataType("INT")] * columns)[0]
    stats = RowStats(packed, packed, (7,) * columns)
    first = DataFile(
        name="",
        size=1000,
        rows=7,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=NO_STATS,
        value_stats=stats,
        min_sequence=0,
        max_sequence=6,
        schema_id=0,
        level=0,
    )
    name = "data-11111111-2222-3333-4444-555555555555-{}.parquet"
    entries = [
        ManifestEntry(ADD, EMPTY, 0, -1, replace(first, name=name.format(number)))
        for number in range(files)
    ]
    written = fastavro.reader(io.BytesIO(write_manifest(entries, "none")))
    file, schema = io.BytesIO(), written.writer_schema
    assert isinstance(schema, dict)
    fastavro.writer(file, schema, list(written), codec="zstandard", sync_interval=1 << 30)
    data = file.getvalue()
    assert files * (2 * len(packed) + 2 * columns) > (4 << 20) + 100 * len(data)
    assert read_manifest(data, file="m") == entries


@pytest.mark.parametrize("count", [100, 10_000_000])
def test_records_that_few_bytes_claim_are_refused(count: int) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": "int"}]}
    block = zstandard.ZstdCompressor().compress(bytes(count))
    data = container(schema, (count, block), codec="zstandard")
    expected = "damaged manifest" if count == 100 else "records of an Avro block"
    with pytest.raises(FormatError, match=expected):
        read_manifest(data, file="m")


def test_a_creation_time_of_plain_milliseconds_is_a_moment(manifests: list[Path]) -> None:
    path = next(path for path in manifests if kind_of(path)[0] is read_manifest)
    entries = read_manifest(path.read_bytes(), file="m")
    opened = fastavro.reader(io.BytesIO(write_manifest(entries, "none")))
    text = json.dumps(opened.writer_schema).replace('"logicalType": "timestamp-millis", ', "")
    schema, plain = json.loads(text), io.BytesIO()
    assert "timestamp-millis" not in text
    rows: list[Any] = list(opened)
    for row in rows:
        row["_FILE"]["_CREATION_TIME"] = int(row["_FILE"]["_CREATION_TIME"].timestamp() * 1000)
    fastavro.writer(plain, schema, rows)
    assert read_manifest(plain.getvalue(), file="m") == entries


def test_a_block_that_is_no_zstd_frame_is_refused() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "f", "type": "int"}]}
    data = container(schema, (1, b"no frame at all"), codec="zstandard")
    with pytest.raises(FormatError, match="damaged Avro file"):
        read_manifest(data, file="m")
