from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from alcid import (
    DeletionVector,
    DeletionVectorFile,
    FileIndex,
    HashIndex,
    ThetaSketch,
)
from alcid.cli.files.file_index import bin_values
from alcid.types import DataType
from tests.cli.samples import TYPES, Alcid, patched
from tests.golden_files import OWN


def headings(page: str) -> list[str]:
    return re.findall("<h2>([^<]*)</h2>", page)


def bars(page: str, heading: str) -> list[tuple[str, str]]:
    """Label and count of the bars below a heading."""
    part = page.partition(f"<h2>{heading}</h2>")[2].partition("</section>")[0]
    labels = re.findall(r'<th scope="row">([^<]*)', part)
    counts = re.findall(r'<td class="number">([^<]*)', part)
    return list(zip(labels, counts, strict=True))


def test_the_page_of_an_index_file(alcid: Alcid, sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    run = alcid("inspect", sample, *TYPES, "--html", out)
    assert (run.status, run.err) == (0, "")
    assert run.out == alcid("inspect", sample, *TYPES).out + f"\nwritten to {out}\n"
    page = out.read_text("utf-8")
    assert headings(page) == [
        "Indexes",
        "Bytes",
        "Values of class_id",
        "Values of day",
        "Values of name",
        "Values of score",
        "Values of tags[a]",
    ]
    assert bars(page, "Values of class_id") == [("NULL", "1"), ("-3", "1"), ("1", "2"), ("2", "1")]
    assert bars(page, "Values of score") == [
        *(("NULL", "1"), ("50.0", "1"), ("70.0", "1"), ("90.0", "1"), ("NaN", "1"))
    ]
    assert bars(page, "Values of tags[a]") == [("NULL", "2"), ("1", "2"), ("2", "1")]


def test_without_types_there_are_no_values(alcid: Alcid, sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    alcid("inspect", sample, "--html", out)
    assert headings(out.read_text("utf-8")) == ["Indexes", "Bytes"]


def test_a_page_shows_what_is_damaged(alcid: Alcid, sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    run = alcid("inspect", patched(sample, 192, b"\x07"), *TYPES, "--html", out)
    assert (run.status, run.err) == (1, "")
    page = out.read_text("utf-8")
    assert "Values of class_id" not in headings(page)
    assert "bytes-damaged" in page
    assert "unknown bsi version at offset 192: found 7, expected 1" in page


VECTORS = {"a": DeletionVector([0, 3]), "b": DeletionVector([17])}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (DeletionVector([5]).to_bytes(), ["Vectors", "Bytes", "Deletion vector of 32 bits"]),
        (
            DeletionVectorFile.write(VECTORS).data,
            ["Vectors", "Bytes", "Deletion vector of 32 bits", "Deletion vector of 32 bits"],
        ),
        (HashIndex([5, 6]).to_bytes(), ["Bytes", "Hash index of 2 keys"]),
        (
            ThetaSketch().update(pa.array([1, 2])).to_bytes(),
            ["Bytes", "Theta sketch of 2 distinct values"],
        ),
        (
            (OWN / "bundles/1.0/sketch-beside.bin").read_bytes(),
            ["Blobs", "Bytes", "Theta sketch of 1,000 distinct values"],
        ),
    ],
    ids=["vector", "vectors", "hashes", "sketch", "bundle"],
)
def test_pages_of_other_files(
    alcid: Alcid, tmp_path: Path, data: bytes, expected: list[str]
) -> None:
    file, out = tmp_path / "file", tmp_path / "page.html"
    file.write_bytes(data)
    assert alcid("inspect", file, "--html", out).status == 0
    assert headings(out.read_text("utf-8")) == expected


def test_a_page_that_cannot_be_written_is_one_line(
    alcid: Alcid, sample: Path, tmp_path: Path
) -> None:
    run = alcid("inspect", sample, "--html", tmp_path / "no-folder" / "page.html")
    assert (run.status, run.out) == (1, "")
    assert run.err.endswith("no-folder/page.html: No such file or directory\n")


def test_names_in_a_file_are_no_markup(alcid: Alcid, tmp_path: Path) -> None:
    table = pa.table({"<script>alert(1)</script>": ["<img src=x>"]})
    options = {"file-index.bitmap.columns": "<script>alert(1)</script>"}
    file, out = tmp_path / "a.index", tmp_path / "page.html"
    file.write_bytes(FileIndex.build(table, options).to_bytes())
    alcid("inspect", file, "--type", "<script>alert(1)</script>=STRING", "--html", out)
    page = out.read_text("utf-8")
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;img src=x&gt;" in page


def test_many_integers_come_into_ranges_of_one_width() -> None:
    keys = [*range(0, 200, 2), 1000]
    labels, counts = bin_values(keys, np.ones(101, np.int64), DataType.parse("INT"))
    assert labels[:2] == ["0 to 40", "42 to 82"]
    assert labels[-1] == "1000"
    assert sum(counts) == 101
    assert counts == [21, 21, 21, 21, 16, 1]


def test_integers_of_the_whole_range() -> None:
    ends = [-(1 << 63), *range(30), (1 << 63) - 1]
    labels, counts = bin_values(ends, np.ones(32, np.int64), DataType.parse("BIGINT"))
    assert labels == ["-9223372036854775808", "0 to 3", "4 to 29", "9223372036854775807"]
    assert counts == [1, 4, 26, 1]


def test_many_texts_come_into_groups_of_as_many() -> None:
    keys = [f"{number:02}".encode() for number in range(48)]
    labels, counts = bin_values(keys, np.arange(48), DataType.parse("STRING"))
    assert labels[:2] == ["'00' to '01'", "'02' to '03'"]
    assert counts[:2] == [1, 5]
    assert (len(labels), sum(counts)) == (24, 47 * 24)


def test_blobs_of_a_bundle_are_known(alcid: Alcid) -> None:
    document = alcid("inspect", OWN / "bundles/1.0/indexes.bin", "--json").json
    assert [blob["state"] for blob in document["blobs"]] == ["ok"] * 8
    facts = {blob["type"]: blob for blob in document["blobs"]}
    assert facts["alcid-files-v1"]["files"] == 3
    assert facts["alcid-directory-v1"]["kinds"] == 5
    assert facts["alcid-bundle-v1"]["bundle_version"] == "1.0"
    assert facts["alcid-index-v1"]["payload_bytes"] == 1166


def test_a_damaged_block_of_a_bundle_is_seen(alcid: Alcid, tmp_path: Path) -> None:
    file = tmp_path / "indexes.bin"
    file.write_bytes((OWN / "bundles/1.0/indexes.bin").read_bytes())
    run = alcid("inspect", patched(file, 2600, b"\xaa\xbb"), "--json")
    document = run.json
    assert (run.status, document["damaged"]) == (1, 1)
    (blob,) = [blob for blob in document["blobs"] if blob["state"] == "damaged"]
    assert blob["properties"]["index-type"] == "bloom-filter"
    assert blob["problem"].startswith("damaged block of bloom-filter of 'id', file 1 at offset")
