"""Table indexes, Puffin and theta sketches in the folder ALCID_GOLDEN, as its README lays it out.

Nothing here runs without that folder; the project's own golden files of the same kinds are those of
`tests/test_golden_tables.py`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import (
    AlcidError,
    DeletionVector,
    DeletionVectorFile,
    FormatError,
    ThetaSketch,
    puffin,
)
from alcid.formats.binary_row import binary_rows, hash_rows
from alcid.formats.buckets import assigner_of
from alcid.types import DataType
from tests.test_golden_puffin import write_again

FOLDER = Path(os.environ["ALCID_GOLDEN"])

ROWS: dict[str, tuple[list[str], list[Any]]] = {
    "int 1": (["INT"], [1]),
    "int -1": (["INT"], [-1]),
    "long 1": (["BIGINT"], [1]),
    "long max": (["BIGINT"], [2**63 - 1]),
    "str ''": (["STRING"], [""]),
    "str 'hello'": (["STRING"], ["hello"]),
    "str 7 'abcdefg'": (["STRING"], ["abcdefg"]),
    "str 8 'abcdefgh'": (["STRING"], ["abcdefgh"]),
    "str 'hello world'": (["STRING"], ["hello world"]),
    "bool true": (["BOOLEAN"], [True]),
    "double 1.5": (["DOUBLE"], [1.5]),
    "dec(10,2) 123.45": (["DECIMAL(10, 2)"], [Decimal("123.45")]),
    "dec(20,2) 123.45": (["DECIMAL(20, 2)"], [Decimal("123.45")]),
    "dec(20,2) -123.45": (["DECIMAL(20, 2)"], [Decimal("-123.45")]),
    "ts(3) 1700000000123": (["TIMESTAMP(3)"], [1700000000123]),
    "ts(6) 1700000000123.456": (["TIMESTAMP(6)"], [1700000000123456]),
    "null": (["INT"], [None]),
    "long,str,int": (["BIGINT", "STRING", "INT"], [1234567890123, "k-é-longer", -5]),
    "null int": (["INT"], [None]),
    "null dec(20,2)": (["DECIMAL(20, 2)"], [None]),
    "null ts(6)": (["TIMESTAMP(6)"], [None]),
    "null ts(3)": (["TIMESTAMP(3)"], [None]),
    "null string": (["STRING"], [None]),
    "date 19000 + str abc": (["DATE", "STRING"], [19000, "abc"]),
    "null dec(20,2), str abcdefgh": (["DECIMAL(20, 2)", "STRING"], [None, "abcdefgh"]),
}
VECTORS = {
    "empty": [],
    "0,1,2,50": [0, 1, 2, 50],
    "range10-40": range(10, 40),
    "1,2,3,1000,70000": [1, 2, 3, 1000, 70000],
    "5, 2^32+7, 2*2^32+9": [5, 2**32 + 7, 2 * 2**32 + 9],
    "only 2^32+7": [2**32 + 7],
}


def names(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob(pattern) if path.is_file())


def table_index() -> dict[str, Any]:
    reference: dict[str, Any] = json.loads((FOLDER / "table-index.json").read_text("utf-8"))
    return reference


def test_binary_rows_and_their_hashes() -> None:
    golden = table_index()
    cases = {name: (case["hash"], case["bytes"]) for name, case in golden["binary_row"].items()}
    cases |= {name: tuple(case) for name, case in golden["projection_nulls_java09"].items()}
    expected_hash, expected = cases.pop("empty row")
    empty = binary_rows(pa.table({"a": [1]}).select([]), [])
    assert (empty[0].hex(), empty.hashes().tolist()) == (expected, [expected_hash])
    assert cases.keys() <= ROWS.keys()
    for name, (expected_hash, expected) in cases.items():
        types = [DataType.parse(text) for text in ROWS[name][0]]
        columns = [
            pa.array([value], data_type.to_arrow())
            for value, data_type in zip(ROWS[name][1], types, strict=True)
        ]
        assert binary_rows(columns, types)[0].hex() == expected, name
        assert hash_rows(columns, types).tolist() == [expected_hash], name


def test_deletion_vectors_of_both_kinds() -> None:
    for name, case in table_index()["dv"].items():
        kind, _, text = name.partition(" ")
        data, positions = bytes.fromhex(case["bytes"]), list(VECTORS[text])
        read = DeletionVector.from_bytes(data, len(positions))
        assert (list(read), str(read.bits)) == (positions, kind)
        assert DeletionVector(positions, bits=read.bits).to_bytes() == data
        written = DeletionVectorFile.write({"a": read})
        assert (written.data[1:], written.ranges[0].length) == (data, case["returned_length"])


def test_assigners() -> None:
    for text, expected in table_index()["assigner"].items():
        assert assigner_of(*map(int, text.split(","))) == expected


@pytest.mark.parametrize("name", names("deletion-vectors/*-position-index.bin"))
def test_a_vector_of_iceberg_is_written_with_its_bytes(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    vector = DeletionVector.from_bytes(data)
    assert DeletionVector(vector.to_numpy(), bits=64).to_bytes() == data
    assert vector.to_bytes(64) == data


@pytest.mark.parametrize("name", names("deletion-vectors/64map*.bin"))
def test_a_64_bit_bitmap_within_a_vector(name: str) -> None:
    import zlib

    from pyroaring import BitMap64

    bitmap = (FOLDER / name).read_bytes()
    body = bytes.fromhex("d1d33964") + bitmap
    data = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    if "highvals" in name:
        with pytest.raises(FormatError, match="key"):
            DeletionVector.from_bytes(data)
        return
    expected = BitMap64.deserialize(bitmap)
    assert DeletionVector.from_bytes(data, len(expected)).to_numpy().tolist() == list(expected)


@pytest.mark.parametrize("name", names("deletion-vectors/dvindex-*"))
def test_a_vector_file_of_paimon(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    with DeletionVectorFile.from_bytes(data) as file:
        scanned = list(file.scan())
    assert [list(vector) for _, vector in scanned] == [[2, 3], [1]]
    assert [item.length for item, _ in scanned] == ([24, 22] if name.endswith("32") else [44, 42])
    written = DeletionVectorFile.write({"a": scanned[0][1], "b": scanned[1][1]})
    assert written.data == data


@pytest.mark.parametrize("name", names("puffin/*.bin"))
def test_puffin_is_read_and_written_with_its_bytes(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.puffin"
    with puffin.open(FOLDER / name) as reader:
        write_again(reader, copy)
        blobs = [reader.read(blob) for blob in reader.blobs]
    if not any(blob.codec for blob in reader.blobs):
        assert copy.read_bytes() == (FOLDER / name).read_bytes()
    with puffin.open(copy) as again:
        assert [again.read(blob) for blob in again.blobs] == blobs
        assert again.properties == reader.properties
    if blobs:
        assert blobs == [b"abcdefghi", "some blob \0 binary data 🤯 that is not very very very very"
                         " very very long, is it?".encode()]  # fmt: skip


READ = ("00ok", "01zstd", "02lz4", "03lz4footer", "24codec_null", "31unknownfield")
READ_OR_REFUSED = ("37trailing",)


@pytest.mark.parametrize("name", names("malformed-puffin/*"))
def test_a_malformed_puffin_is_refused(name: str) -> None:
    stem = Path(name).name.partition(".")[0]
    if stem in READ:
        read_puffin(FOLDER / name)
        return
    try:
        read_puffin(FOLDER / name)
    except FormatError as error:
        assert name in str(error)  # noqa: PT017
        print(error)
    else:
        assert stem in READ_OR_REFUSED


def read_puffin(path: Path) -> None:
    with puffin.open(path) as reader:
        for blob in reader.blobs:
            reader.read(blob)


@pytest.mark.parametrize("name", names("malformed-dv/*"))
def test_a_malformed_vector_is_refused(name: str) -> None:
    stem, _, cardinality = Path(name).name.partition("@")
    data = (FOLDER / name).read_bytes()
    if stem in ("a_ok", "m_trailing", "n_sparse"):
        vector = DeletionVector.from_bytes(data, int(cardinality))
        assert vector.cardinality == int(cardinality)
        return
    with pytest.raises(FormatError) as caught:
        DeletionVector.from_bytes(data, int(cardinality), name=name)
    print(caught.value)
    assert str(caught.value).startswith(f"{name}: ")


DAMAGED = names("malformed-puffin/*") + names("malformed-dv/*")
PROCESS = """
import resource, sys, time
from pathlib import Path
from tests.test_golden_reference import read_damaged
unit = 1 if sys.platform == "darwin" else 1024
for name in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.monotonic()
    read_damaged(name)
    assert time.monotonic() - begin < 1, name
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    assert grown < 200 << 20, (name, grown)
"""


def read_damaged(name: str) -> None:
    try:
        if name.startswith("malformed-puffin"):
            read_puffin(FOLDER / name)
        else:
            DeletionVector.from_bytes((FOLDER / name).read_bytes())
    except AlcidError:
        pass


def test_malformed_files_take_little_time_and_memory() -> None:
    assert DAMAGED
    subprocess.run([sys.executable, "-c", PROCESS, *DAMAGED], check=True)


def of_type(kind: str, x: range) -> pa.Array:
    """The column of a golden sketch, over the rows `x` of one task."""
    match kind:
        case "i":
            return pa.array([value % 500 for value in x], pa.int32())
        case "s":
            return pa.array(map(str, x))
        case "e":
            return pa.array(["" if value % 3 == 0 else f"k{value % 10}" for value in x])
        case "d":
            return pa.array([Decimal(value) * Decimal("1.25") for value in x], pa.decimal128(12, 2))
        case "f":
            return pa.array(map(float, x))
        case "nn":
            return pa.nulls(len(x), pa.int64())
        case "b":
            return pa.array([value % 2 == 0 for value in x])
        case "dt":
            return pa.array([date(2020, 1, 1) + timedelta(value % 400) for value in x])
        case "ts":
            return pa.array([value * 10**6 for value in x], pa.timestamp("us", "UTC"))
        case "bin":
            return pa.array([str(value).encode() for value in x], pa.binary())
    raise AssertionError(kind)


def sketch_of_tasks(tasks: list[pa.Array]) -> ThetaSketch:
    union = ThetaSketch()
    for rows in tasks:
        union = union.union(ThetaSketch().update(rows))
    return union


@pytest.mark.parametrize("name", names("theta/*.bin"))
def test_a_sketch_has_the_bytes_that_iceberg_stores(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert ThetaSketch.from_bytes(data).to_bytes() == data
    if match := re.search(r"ice_p(\d+)_n(\d+)", name):
        parts, count = map(int, match.groups())
        bounds = [task * count // parts for task in range(parts + 1)]
        tasks = [pa.array(np.arange(*pair)) for pair in itertools.pairwise(bounds)]
    else:
        kind = Path(name).stem.removeprefix("ty_")
        tasks = [of_type(kind, range(begin, begin + 1000)) for begin in (0, 1000, 2000)]
    assert sketch_of_tasks(tasks).to_bytes() == data
