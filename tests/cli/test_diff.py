from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pytest

from alcid import (
    DeletionVector,
    DeletionVectorFile,
    FileIndex,
    HashIndex,
    ThetaSketch,
    puffin,
)
from alcid.formats.file_index.container import write_container
from tests.cli.samples import Alcid, Run, patched

TYPES = ("--type", "city=STRING", "--type", "n=INT", "--type", "x=DOUBLE")
OPTIONS: dict[str, str | int] = {
    "file-index.bitmap.columns": "city",
    "file-index.range-bitmap.columns": "x",
    "file-index.bsi.columns": "n",
    "file-index.bloom-filter.columns": "n",
    "file-index.bloom-filter.n.items": 10,
}
CITIES: Sequence[str | None] = ["Graz", "Linz", "Graz", None, "Wien"]
Diff: TypeAlias = Callable[..., Run]


def index(
    cities: Sequence[str | None] = CITIES,
    numbers: tuple[int | None, ...] = (1, -2, 3, None, 7),
    scores: tuple[float, ...] = (1.0, 2.0, 2.0, 0.0, float("nan")),
    **more: str | int,
) -> bytes:
    columns = {"city": list(cities), "n": pa.array(numbers, pa.int32()), "x": list(scores)}
    options = {name.replace("_", "."): value for name, value in more.items()}
    return FileIndex.build(pa.table(columns), OPTIONS | options).to_bytes()


@pytest.fixture
def diff(alcid: Alcid, tmp_path: Path) -> Diff:
    """Compares bytes that are written to files of these names."""

    def run(a: bytes, b: bytes, *arguments: object, name: str = "file") -> Run:
        paths = [tmp_path / letter / name for letter in "AB"]
        for path, data in zip(paths, (a, b), strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return alcid("diff", *paths, *arguments)

    return run


def lines(run: Run) -> list[str]:
    """The lines below the names of the files."""
    assert run.err == ""
    return run.out.splitlines()[2:]


def test_the_same_bytes(diff: Diff, tmp_path: Path) -> None:
    run = diff(index(), index(), *TYPES)
    assert run == Run(
        0,
        f"A: {tmp_path}/A/file, Paimon file index, {len(index())} bytes\n"
        f"B: {tmp_path}/B/file, Paimon file index, {len(index())} bytes\n"
        "the same, byte for byte\n",
        "",
    )


def test_other_bytes_with_the_same_content_are_mentioned_but_no_difference(diff: Diff) -> None:
    options = {"file-index.bitmap.city.version": 1}
    table = pa.table({"city": CITIES})
    newer, older = (
        FileIndex.build(table, {"file-index.bitmap.columns": "city", **more}).to_bytes()
        for more in ({}, options)
    )
    run = diff(newer, older, *TYPES)
    assert run.status == 0
    assert lines(run) == [
        "same content; bytes differ first at offset 45 (head > city > bitmap > length)"
    ]


def test_another_value_is_named_with_the_first_row(diff: Diff) -> None:
    other = index(["Graz", "Linz", "Linz", None, "Wien"], (1, -2, 4, None, 7))
    run = diff(index(), other, *TYPES)
    assert run.status == 1
    assert lines(run) == [
        "city, bitmap: value 'Graz': row 2 only in A",
        "n, bloom-filter: bit 0 set only in A; 5 bits differ",
        "n, bsi: value 3: row 2 only in A",
        "bytes differ first at offset 87 (head > n > bsi > length)",
    ]


def test_several_rows_are_counted(diff: Diff) -> None:
    scores = (1.0, 2.5, 2.5, 0.0, float("nan"))
    assert lines(diff(index(), index(scores=scores), *TYPES))[:1] == [
        "x, range-bitmap: value 2.0: row 1 only in A; 2 rows differ"
    ]


def test_a_value_that_only_one_has_in_place_of_null(diff: Diff) -> None:
    cities = ["Graz", "Linz", "Graz", "Bregenz", "Wien"]
    assert lines(diff(index(), index(cities), *TYPES))[0] == (
        "city, bitmap: value 'Bregenz': row 3 only in B"
    )


def test_more_rows_in_one(diff: Diff) -> None:
    first = FileIndex.build(pa.table({"n": [1, 2]}), {"file-index.bsi.columns": "n"}).to_bytes()
    two = FileIndex.build(pa.table({"n": [1, 2, 2]}), {"file-index.bsi.columns": "n"}).to_bytes()
    assert lines(diff(first, two))[:2] == [
        "n, bsi: rows 2 in A, 3 in B",
        "n, bsi: value 2: row 2 only in B",
    ]


def test_nulls_that_differ_alone(diff: Diff) -> None:
    """A row with neither value nor null, which only damage can leave."""
    whole = FileIndex.build(pa.table({"c": ["a", None]}), {"file-index.bitmap.columns": "c"})
    start = whole.entries[0].start
    data = bytearray(whole.to_bytes())
    data[start + 10 : start + 14] = (-1).to_bytes(4, "big", signed=True)  # -1 - row 0
    assert lines(diff(whole.to_bytes(), bytes(data), "--type", "c=STRING"))[:1] == [
        "c, bitmap: null: row 0 only in B; 2 differ"
    ]


def test_without_types_bytes_are_compared_and_a_hint_is_given(diff: Diff) -> None:
    other = index(["Graz", "Linz", "Graz", None, "Wels"])
    run = diff(index(), other)
    assert run.status == 1
    first = lines(run)[0]
    assert first.startswith("city, bitmap: bytes differ first at offset ")
    assert first.endswith("(dictionary and bitmaps); --type city=TYPE compares values")


def test_indexes_that_only_one_has(diff: Diff) -> None:
    first = write_container({("a", "other"): b"xy", ("b", "other"): b"1"})
    two = write_container({("a", "other"): b"xz", ("c", "other"): b"1", ("d", "x"): None})
    run = diff(first, two)
    assert run.status == 1
    assert lines(run) == [
        "a, other: bytes differ first at offset 69",
        "b, other: only in A",
        "c, other: only in B",
        "d, x: only in B",
        "bytes differ first at offset 15 (head > head length)",
    ]


def test_an_index_that_was_not_written(diff: Diff) -> None:
    first = write_container({("a", "bitmap"): None})
    two = write_container({("a", "bitmap"): b"x"})
    assert lines(diff(first, two))[0] == "a, bitmap: written False in A, True in B"


def test_filters_of_two_sizes(diff: Diff) -> None:
    first, two = (
        FileIndex.build(
            pa.table({"n": [1]}),
            {
                "file-index.bloom-filter.columns": "n",
                "file-index.bloom-filter.n.items": items,
            },
        ).to_bytes()
        for items in (10, 100)
    )
    assert lines(diff(first, two))[0] == "n, bloom-filter: bits 48 in A, 480 in B"


def test_vectors(diff: Diff) -> None:
    first = {"a": DeletionVector([1, 2]), "b": DeletionVector([5])}
    two = {"a": DeletionVector([1, 3])}
    run = diff(DeletionVectorFile.write(first).data, DeletionVectorFile.write(two).data)
    assert run.status == 1
    assert lines(run)[:2] == [
        "vector 0: position 2 only in A; 2 differ",
        "vector 1: only in A, 1 position",
    ]


def test_vectors_of_both_kinds_have_the_same_content(diff: Diff) -> None:
    vector = DeletionVector([1, 2])
    run = diff(vector.to_bytes(32), vector.to_bytes(64))
    assert (run.status, lines(run)) == (
        0,
        ["same content; bytes differ first at offset 3 (length)"],
    )


def test_hashes_in_another_order(diff: Diff) -> None:
    data = HashIndex([1, 2, 3]).to_bytes()
    turned = data[8:] + data[:8]
    assert diff(data, turned).status == 0
    run = diff(data, HashIndex([1, 2, -9]).to_bytes())
    assert (run.status, lines(run)[0]) == (1, "hashes: hash -9 only in B; 2 differ")


def test_sketches(diff: Diff) -> None:
    first, two = (ThetaSketch().update(pa.array(values)) for values in (["a"], ["a", "b"]))
    (more,) = set(two.hashes.tolist()) - set(first.hashes.tolist())
    run = diff(first.to_bytes(), two.to_bytes())
    assert (run.status, lines(run)[0]) == (1, f"sketch: hash {more} only in B")


def _puffin(codec: str | None, data: bytes, by: str, positions: list[int]) -> bytes:
    file = io.BytesIO()
    with puffin.create(file, properties={"created-by": by}) as writer:
        writer.add("mine", data, fields=(4,), codec=codec, properties={"kept": by[:1]})
        writer.add_deletion_vector(DeletionVector(positions, bits=64), "a.parquet")
    return file.getvalue()


def test_compression_and_the_writer_are_no_content(diff: Diff) -> None:
    first = _puffin(None, b"x" * 99, "one", [3])
    two = _puffin("zstd", b"x" * 99, "other", [3])
    run = diff(first, two)
    assert run.status == 0
    assert lines(run)[0].startswith("same content; bytes differ first at offset 4 (mine")


def test_blobs(diff: Diff) -> None:
    first = _puffin(None, b"x" * 99, "one", [3])
    two = _puffin(None, b"x" * 90 + b"y", "two", [3, 4])
    vector = "deletion-vector-v1 of fields 2147483645, a.parquet"
    run = diff(first, two)
    assert run.status == 1
    assert lines(run)[:4] == [
        "mine of fields 4: byte 90 is 78 in A, 79 in B",
        "mine of fields 4: property kept 'o' in A, 't' in B",
        f"{vector}: position 4 only in B",
        f"{vector}: property cardinality '1' in A, '2' in B",
    ]


def test_two_blobs_of_one_name(diff: Diff) -> None:
    files = []
    for contents in ((b"a", b"b"), (b"a",)):
        file = io.BytesIO()
        with puffin.create(file) as writer:
            for content in contents:
                writer.add("mine", content)
        files.append(file.getvalue())
    assert lines(diff(*files))[0] == "mine, number 2: only in A"


def test_json(diff: Diff, tmp_path: Path) -> None:
    document = diff(HashIndex([1]).to_bytes(), HashIndex([1, 2]).to_bytes(), "--json").json
    assert document == {
        "a": f"{tmp_path}/A/file",
        "b": f"{tmp_path}/B/file",
        "kind": "Paimon hash index",
        "sizes": [4, 8],
        "same": False,
        "identical": False,
        "differences": [{"entry": "hashes", "status": "differs", "detail": "hash 2 only in B"}],
        "first_byte": {"offset": 4, "regions": []},
    }


def test_files_of_two_kinds_are_wrong_use(diff: Diff, tmp_path: Path) -> None:
    run = diff(HashIndex([1]).to_bytes(), index())
    assert (run.status, run.out) == (2, "")
    assert run.err == (
        f"alcid: {tmp_path}/A/file is a Paimon hash index, {tmp_path}/B/file a Paimon file index: "
        "expected two of the same kind\n"
    )


def test_a_damaged_file_is_one_line(diff: Diff, sample: Path, alcid: Alcid) -> None:
    whole = sample.read_bytes()
    run = diff(whole, patched(sample, 192, b"\x07").read_bytes())
    assert (run.status, run.out) == (1, "")
    assert run.err.count("\n") == 1
    assert "unknown bsi version at offset 192: found 7, expected 1" in run.err
    assert alcid("diff", sample, sample.with_name("nothing")).status == 1
