"""`alcid inspect` of table indexes, Puffin files and their contents."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.test_damage import run
from tests.golden.positions import positions_of
from tests.golden_files import Golden, Json, golden_files, golden_id


def inspect(alcid: Alcid, path: Path, *options: str) -> dict[str, Any]:
    finished = alcid("inspect", path, "--json", *options)
    assert (finished.status, finished.err) == (0, "")
    document: dict[str, Any] = json.loads(finished.out)
    assert (document.pop("file"), document.pop("size")) == (str(path), path.stat().st_size)
    return document


def vector_facts(facts: Json) -> dict[str, Any]:
    positions = positions_of(facts["positions"])
    ends = (positions[0], positions[-1]) if positions else (None, None)
    return {
        "cardinality": len(positions),
        "first": ends[0],
        "last": ends[1],
        "positions": positions if len(positions) <= 8 else None,
    }


@pytest.mark.parametrize("golden", golden_files("deletion_vector_file"), ids=golden_id)
def test_a_deletion_vector_file(alcid: Alcid, golden: Golden) -> None:
    data, path = golden.data, golden.path.with_suffix(".bin")
    expected = []
    for vector in golden.json["vectors"]:
        end = vector["offset"] + vector["length"] + (8 if vector["bits"] == 32 else 0)
        expected.append(
            {
                "offset": vector["offset"],
                "bytes": end - vector["offset"],
                "length": vector["length"],
                "kind": f"{vector['bits']}-bit",
                "crc": data[end - 4 : end].hex(),
                "state": "ok",
                "problem": None,
                **vector_facts(vector),
            }
        )
    assert inspect(alcid, path, "--limit", "0") == {
        "kind": "Paimon deletion vector file",
        "version": 1,
        "vectors": expected,
        "truncated": False,
        "count": len(expected),
        "damaged": 0,
    }


@pytest.mark.parametrize("golden", golden_files("deletion_vector"), ids=golden_id)
def test_a_deletion_vector_by_itself(alcid: Alcid, golden: Golden) -> None:
    document = inspect(alcid, golden.path.with_suffix(".bin"))
    (vector,) = document.pop("vectors")
    assert document == {"kind": "deletion vector", "truncated": False, "count": 1, "damaged": 0}
    assert vector.items() >= vector_facts(golden.json).items()
    assert vector["kind"] == f"{golden.json['bits']}-bit"


@pytest.mark.parametrize("golden", golden_files("hash_index"), ids=golden_id)
def test_a_hash_index(alcid: Alcid, tmp_path: Path, golden: Golden) -> None:
    stored = golden.json["stored"]
    path = tmp_path / "index-4a63bd9f-0"  # without an ending, as Paimon names it
    shutil.copy(golden.path.with_suffix(".bin"), path)
    if not stored:
        finished = alcid("inspect", path)
        assert (finished.status, finished.out) == (1, "")
        return
    assert inspect(alcid, path) == {
        "kind": "Paimon hash index",
        "identified_by": "its size only",
        "hashes": len(set(stored)),
        "duplicates": len(stored) - len(set(stored)),
        "min": min(stored),
        "max": max(stored),
    }


@pytest.mark.parametrize("golden", golden_files("puffin"), ids=golden_id)
def test_a_puffin_file(alcid: Alcid, golden: Golden) -> None:
    document = inspect(alcid, golden.path.with_suffix(".bin"))
    blobs = document.pop("blobs")
    expected = {
        "kind": "Puffin file",
        "footer_bytes": golden.json["footer_size"],
        "truncated": False,
        "count": len(blobs),
        "damaged": 0,
    }
    if golden.json["properties"]:
        expected["properties"] = golden.json["properties"]
    assert document == expected
    names = ("type", "fields", "snapshot_id", "sequence_number", "offset", "codec")
    for blob, stated in zip(blobs, golden.json["blobs"], strict=True):
        assert {name: blob[name] for name in names} == {name: stated[name] for name in names}
        assert (blob["bytes"], blob.get("properties", {})) == (
            stated["length"],
            stated["properties"],
        )
        if "positions" in stated:
            assert blob.items() >= vector_facts(stated).items()
        elif stated["type"] == library.puffin.THETA_SKETCH:
            assert int(blob["estimate"]) == int(stated["properties"]["ndv"])
            assert blob["theta"] <= 1
        else:
            assert blob["state"] == "unknown"


@pytest.mark.parametrize("golden", golden_files("theta"), ids=golden_id)
def test_a_theta_sketch_by_itself(alcid: Alcid, golden: Golden) -> None:
    assert inspect(alcid, golden.path.with_suffix(".bin")) == {
        "kind": "theta sketch",
        "estimate": golden.json["estimate"],
        "ndv": golden.json["ndv"],
        "theta": golden.json["theta"] / 2**63,
        "hashes": golden.json["retained"],
    }


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "index-1"
    written = library.DeletionVectorFile.write(
        {
            "a": library.DeletionVector([1, 2, 70000]),
            "b": library.DeletionVector([2**32], bits=64),
            "c": library.DeletionVector(),
        }
    )
    path.write_bytes(written.data)
    return path


def test_text_of_a_deletion_vector_file(alcid: Alcid, vectors: Path) -> None:
    assert alcid("inspect", vectors).out == (
        f"{vectors}: Paimon deletion vector file, 117 bytes\n"
        "version 1\n"
        "\n"
        "OFFSET  BYTES  LENGTH  KIND    CRC       FACTS\n"
        "     1     42      34  32-bit  7109b50c  cardinality 3, positions 1, 2, 70000\n"
        "    43     54      54  64-bit  0efd4dae  cardinality 1, positions 4294967296\n"
        "    97     20      12  32-bit  5de5c7e9  cardinality 0, positions none\n"
    )


def test_a_limit_is_said(alcid: Alcid, vectors: Path) -> None:
    finished = alcid("inspect", vectors, "--limit", "1")
    assert "\n1 of 3 vectors\n" in finished.out
    assert inspect(alcid, vectors, "--limit", "1")["truncated"]


def test_a_damaged_vector_is_shown_and_the_others_too(alcid: Alcid, vectors: Path) -> None:
    data = bytearray(vectors.read_bytes())
    data[20] ^= 1
    vectors.write_bytes(data)
    finished = alcid("inspect", vectors, "--json")
    shown = json.loads(finished.out)["vectors"]
    assert finished.status == 1
    assert [vector["state"] for vector in shown] == ["damaged", "ok", "ok"]
    assert "checksum" in shown[0]["problem"]
    # Damage counts even if it is not shown.
    data[20] ^= 1
    data[-1] ^= 1
    vectors.write_bytes(data)
    assert alcid("inspect", vectors, "--limit", "1").status == 1


def test_vectors_end_where_a_length_is_damaged(alcid: Alcid, vectors: Path) -> None:
    data = bytearray(vectors.read_bytes())
    data[43] = 0x7F
    vectors.write_bytes(data)
    shown = json.loads(alcid("inspect", vectors, "--json").out)["vectors"]
    assert [vector["state"] for vector in shown] == ["ok", "damaged"]


def test_a_damaged_blob_is_shown_and_the_others_too(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    with library.puffin.create(path) as writer:
        writer.add_deletion_vector(library.DeletionVector([5]), "a.parquet")
        writer.add_deletion_vector(library.DeletionVector([6]), "b.parquet")
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    finished = alcid("inspect", path, "--json")
    assert finished.status == 1
    assert [blob["state"] for blob in json.loads(finished.out)["blobs"]] == ["damaged", "ok"]
    assert "\ndeletion-vector-v1  2147483645           -1               -1       4     42  -      damaged: " in alcid("inspect", path).out  # fmt: skip # noqa: E501


def test_what_has_no_columns_is_not_asked_for_one(alcid: Alcid, vectors: Path) -> None:
    finished = alcid("inspect", vectors, "--column", "a")
    assert (finished.status, finished.out) == (2, "")
    assert finished.err == (
        f"alcid: --column: {vectors} is a Paimon deletion vector file, which has no columns\n"
    )
    finished = alcid("probe", vectors, "a = 1")
    assert finished.status == 1
    assert finished.err == (
        f"alcid: {vectors}: only file indexes can be probed: found a Paimon deletion vector file,"
        " expected a Paimon file index\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "is_hashes"),
    [
        ("index-1", b"\x00\x00\x00\x07" * 2, True),
        ("hashes", b"\x00\x00\x00\x07" * 2, False),
        ("Makefile", b"all: install\n\techo x", False),
        ("index-1", b"eight by", False),
        ("a.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", False),
        ("hashes.bin", b"\x00\x00\x00\x07\xff\x00\x00\x07", True),
        ("other.bin", b"\xff\x00\x00\x07" * 2, False),
        ("text.txt", b"eight by", False),
        ("data.index", b"\x00\x00\x00\x07\xff\x00\x00\x07", False),
        ("index-1", b"\x00\x00\x00\x07\x01", False),
    ],
)
def test_what_is_taken_for_a_hash_index(
    alcid: Alcid, tmp_path: Path, name: str, content: bytes, is_hashes: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    finished = alcid("inspect", path)
    assert finished.status == (0 if is_hashes else 1)
    assert ("Paimon hash index" in finished.out) == is_hashes


SMALL = [
    golden
    for golden in golden_files("deletion_vector_file", "deletion_vector", "puffin", "theta")
    if golden.json["size"] < 5000
]


@given(data=st.data())
def test_damaged_bytes_end_in_one_line_or_a_report(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(data.draw(st.sampled_from(SMALL)).data)
    offset = data.draw(st.integers(0, len(content) - 1), "offset")
    piece = data.draw(st.sampled_from([b"\0", b"\1", b"\x7f", b"\xff", b"\0" * 4, b"\xff" * 4]))
    content[offset : offset + len(piece)] = piece
    kept = data.draw(st.just(len(content)) | st.integers(0, len(content)), "kept")
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content[:kept])
    finished = run("inspect", str(path), "--json")
    if finished.err:
        assert (finished.status, finished.out, finished.err.count("\n")) == (1, "", 1)
        return
    document = json.loads(finished.out)
    items = document.get("vectors", []) + document.get("blobs", [])
    assert finished.status == int(any(item["state"] == "damaged" for item in items))


@pytest.mark.parametrize(
    ("offset", "problem"),
    [
        (0, "unknown deletion vector file version"),
        (5, "not a deletion vector: bad magic"),
    ],
)
def test_a_vector_file_with_a_damaged_head_is_still_one(
    alcid: Alcid, tmp_path: Path, offset: int, problem: str
) -> None:
    path = tmp_path / "index-1"
    data = bytearray(
        library.DeletionVectorFile.write({"a": library.DeletionVector([1, 2, 5])}).data
    )
    data += bytes(-len(data) % 4)  # the size of whole hashes
    data[offset] ^= 2
    path.write_bytes(data)
    finished = alcid("inspect", path)
    assert finished.status == 1
    assert problem in finished.out + finished.err


def test_a_file_of_vectors_of_delta_is_called_so(alcid: Alcid, tmp_path: Path) -> None:
    data = library.DeletionVectorFile.write(
        {"a.parquet": library.DeletionVector([0, 9], bits=64)}
    ).data
    name = "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"
    (tmp_path / name).write_bytes(data)
    document = inspect(alcid, tmp_path / name)
    assert (document["kind"], document["vectors"][0]["positions"]) == (
        "Delta deletion vector file",
        [0, 9],
    )
    same = alcid("diff", tmp_path / name, tmp_path / name)
    assert (same.status, same.err) == (0, "")
