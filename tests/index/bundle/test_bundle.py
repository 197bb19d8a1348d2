"""Bundles: what is written is read again, in few reads."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from pyroaring import BitMap

from alcid import FormatError, UnsupportedError, puffin
from alcid.errors import OptionError
from alcid.formats.file_index.keys import key_type
from alcid.formats.file_index.reader import EmptyReader
from alcid.formats.source import BytesSource
from alcid.index.bundle import (
    Bundle,
    BundleWriter,
    ColumnStatistics,
    FileEntry,
    PayloadKind,
)
from alcid.index.file_index import FileIndex
from alcid.testing import CountingSource
from tests.index.bundle.bundles import (
    BIGINT,
    KINDS,
    File,
    content,
    data_files,
    expected,
    reopened,
    some_files,
    write,
)


@given(data_files())
def test_what_is_written_is_read(files: list[File]) -> None:
    bundle = reopened(files)
    assert content(bundle) == expected(files)
    assert bundle.file_count == len(files)
    assert set(bundle.kinds) == {kind for file in files for kind in file.payloads}


def test_the_same_content_gives_the_same_bytes() -> None:
    assert write(some_files()) == write(some_files())


def test_ten_thousand_files_cost_three_reads_and_small_bundles_one() -> None:
    kinds = [PayloadKind.index(column, "bitmap") for column in "abc"]
    files = [
        File(
            FileEntry(
                f"dt={n % 30}/part-{n:05d}.parquet",
                n,
                str(n),
                n,
                n,
                {"a": ColumnStatistics(BIGINT, n, n + 9, 0)},
            ),
            dict.fromkeys(kinds, bytes(100)),
        )
        for n in range(10_000)
    ]
    source = CountingSource(BytesSource(write(files)))
    bundle = Bundle.open(source)
    assert source.take() == [(source.size - (256 << 10), 256 << 10), (0, 4)]
    assert bundle.files.rows.tolist() == list(range(10_000))
    for kind in kinds:
        series = bundle.series(kind)
        assert series is not None
        assert series.directory.rows.tolist() == list(range(10_000))
    assert len(source.take()) == 1
    assert bundle.read(kinds[1], 9_999) == bytes(100)
    assert [length for _, length in source.take()] == [104]

    small = CountingSource(BytesSource(write(some_files())))
    assert content(Bundle.open(small)) == expected(some_files())
    payloads = sum(len(file.payloads) - 1 for file in some_files())  # one of each is empty
    heads = sum(
        0 < len(payload) <= 4 for file in some_files() for payload in file.payloads.values()
    )
    assert len(small.take()) == 1 + payloads - heads


def test_an_index_in_a_bundle_answers_as_it_does_in_its_container() -> None:
    ids = pa.table({"id": pa.array([5, 7, None, 5, 9], pa.int64())})
    types = ("bloom-filter", "bitmap", "range-bitmap", "bsi")
    options = {f"file-index.{name}.columns": "id" for name in types}
    container = FileIndex.build(ids, options).container
    payloads = {
        PayloadKind.index("id", entry.index_type): container.section(entry).read(0, entry.length)
        for entry in container.entries
    }
    bundle = reopened([File(FileEntry("a", 1, "1", 5), payloads)])
    rows: dict[str, list[object]] = {}
    for name in types:
        reader = bundle.index(0, "id", name, key_type(BIGINT))
        assert reader is not None
        assert reader.is_in([6]).skip
        rows[name] = [reader.is_in([5]).rows, reader.is_null().rows]
    exact = [BitMap([0, 3]), BitMap([2])]
    assert rows == {"bloom-filter": [None, None], **dict.fromkeys(types[1:], exact)}


def test_an_index_that_was_not_written_has_no_row() -> None:
    kind = PayloadKind.index("m[k]", "bitmap")
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        writer.add(writer.add_file(FileEntry("a", 1, "1", 0)), kind, None)
    reader = Bundle.open(BytesSource(data.getvalue())).index(0, "m[k]", "bitmap", key_type(BIGINT))
    assert isinstance(reader, EmptyReader)


def test_missing_payloads_of_a_bundle_are_none() -> None:
    files = some_files(2)
    without = [File(files[0].entry, {}), files[1]]
    bundle = reopened(without)
    assert bundle.read(KINDS[0], 0) is None
    assert bundle.read(PayloadKind.pages("other"), 0) is None
    assert bundle.index(0, "id", "bitmap", key_type(BIGINT)) is None
    assert bundle.series(PayloadKind.container()) is not None
    assert bundle.series(PayloadKind.pages("other")) is None


def test_a_payload_that_is_no_known_index_is_not_opened() -> None:
    bundle = reopened(
        [File(FileEntry("a", 1, "1", 5), {PayloadKind.index("id", "later"): b"12345"})]
    )
    with pytest.raises(UnsupportedError, match=r"x.bundle: later of 'id': expected a known index"):
        bundle.index(0, "id", "later", key_type(BIGINT))


def test_blobs_have_the_ids_of_an_iceberg_table() -> None:
    data = write(some_files(), field_ids={"id": 7}, snapshot_id=11, sequence_number=3)
    with puffin.open(io.BytesIO(data)) as reader:
        ids = {
            blob.type: (blob.fields, blob.snapshot_id, blob.sequence_number)
            for blob in reader.blobs
        }
    assert ids == {
        "alcid-index-v1": ((), 11, 3),  # the last of them is for a column without an id
        "alcid-pages-v1": ((7,), 11, 3),
        "alcid-container-v1": ((), 11, 3),
        "alcid-directory-v1": ((), 11, 3),
        "alcid-files-v1": ((), 11, 3),
        "alcid-bundle-v1": ((), 11, 3),
    }
    assert content(Bundle.open(BytesSource(data))) == expected(some_files())


def test_blobs_of_other_types_are_kept() -> None:
    blob = puffin.Blob("apache-datasketches-theta-v1", (1,), 2, 3, 0, 0, "zstd", {"ndv": "5"})
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        writer.add_file(FileEntry("a", 1, "1", 5))
        writer.add_blob(blob, b"sketch")
        with pytest.raises(OptionError, match="'alcid-later-v1' is written by the bundle itself"):
            writer.add_blob(puffin.Blob("alcid-later-v1", (), -1, -1, 0, 0), b"")
    bundle = Bundle.open(BytesSource(data.getvalue()))
    (other,) = bundle.others
    assert (other.type, other.fields, other.properties) == (blob.type, (1,), {"ndv": "5"})
    assert bundle.read_blob(other) == b"sketch"
    assert bundle.kinds == ()


@pytest.mark.parametrize("version", ["2.0", "0.9", "1", "x.1", "1.x", ""])
def test_another_major_version_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedError, match=f"found a bundle of version '{version}'"):
        Bundle.open(BytesSource(with_version(version)))


def test_a_higher_minor_version_and_its_blobs_are_read() -> None:
    assert content(Bundle.open(BytesSource(with_version("1.7")))) == expected(some_files())


def with_version(version: str) -> bytes:
    """Some files in a bundle of another version, with a blob of an unknown type."""
    from alcid.index.bundle.format import closing_properties

    data = io.BytesIO()
    properties = {"alcid.bundle-version": version}
    with (
        puffin.open(io.BytesIO(write(some_files()))) as reader,
        puffin.create(data, properties=properties) as writer,
    ):
        for blob in reader.blobs[:-1]:
            writer.add(blob.type, reader.read(blob), properties=blob.properties, codec=blob.codec)
        last = writer.add("alcid-later-v1", b"anything")
        closing = puffin.Blob(
            "alcid-bundle-v1", (), -1, -1, last.offset + last.length, 0, None, {"files": "3"}
        )
        closed = closing_properties(writer.blobs, closing, properties)
        writer.add("alcid-bundle-v1", b"", properties=closed)
    return data.getvalue()


def test_a_puffin_file_that_is_no_bundle_is_refused() -> None:
    data = io.BytesIO()
    with puffin.create(data, properties={"alcid.bundle-version": "1.0"}) as writer:
        writer.add("note", b"")
    with pytest.raises(FormatError, match="no bundle at offset 4: found 'note'"):
        Bundle.open(BytesSource(data.getvalue()))
    data = io.BytesIO()
    with puffin.create(data):
        pass
    with pytest.raises(FormatError, match=r"no bundle: no property 'alcid.bundle-version'"):
        Bundle.open(BytesSource(data.getvalue()))


def test_payloads_out_of_order_or_without_a_file_are_refused() -> None:
    writer = BundleWriter(io.BytesIO())
    for name in "ab":
        writer.add_file(FileEntry(name, 1, "1", 5))
    writer.add(1, KINDS[0], b"1")
    with pytest.raises(UnsupportedError, match="payload of file 0 after that of file 1"):
        writer.add(0, KINDS[0], b"1")
    with pytest.raises(UnsupportedError, match="file 2: expected one of 2 added before"):
        writer.add(2, KINDS[0], b"1")
    assert writer.payload_bytes == 1


def test_an_exception_leaves_no_bundle() -> None:
    data = io.BytesIO()
    with pytest.raises(ZeroDivisionError), BundleWriter(data):
        _ = 1 // 0
    assert data.getvalue() == b"PFA1"


def test_the_footer_says_what_a_blob_holds_and_where_its_directory_is() -> None:
    with puffin.open(io.BytesIO(write(some_files()))) as reader:
        blobs = [(blob.type, blob.properties) for blob in reader.blobs[:3]]
    name = {"column": "id", "index-type": "bitmap"}
    assert blobs == [
        ("alcid-container-v1", {"entries": "3", "directory": "0"}),
        ("alcid-index-v1", {**name, "entries": "3", "directory": "40"}),
        (
            "alcid-index-v1",
            {**name, "index-type": "bloom-filter", "entries": "3", "directory": "80"},
        ),
    ]


def test_rows_and_sizes_are_arrays() -> None:
    files = reopened(some_files()).files
    assert files.sizes.dtype == files.rows.dtype == np.int64
    assert files.table.column_names == [
        *("path", "size", "version", "footer_crc", "rows", "schema"),
        *("id: BIGINT", "score: DOUBLE"),
    ]
