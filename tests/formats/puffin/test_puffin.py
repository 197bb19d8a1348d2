"""Puffin files: the bytes are Java's, reads are few, and nothing is half written."""

from __future__ import annotations

import io
import json
import os
import pickle
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alcid
from alcid import (
    AlcidError,
    FormatError,
    LimitError,
    OptionError,
    UnsupportedError,
)
from alcid.formats import puffin
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin import footer as footer_module
from alcid.formats.puffin import writer as writer_module
from alcid.formats.puffin.footer import write_footer
from alcid.formats.puffin.writer import created_by
from alcid.formats.source import BytesSource, FileObjectSource, FileSource
from alcid.formats.theta.sketch import ThetaSketch
from alcid.inspect.display import fragment_of, picture
from alcid.testing import CountingSource

EMPTY = b'PFA1PFA1{"blobs":[]}\x0c\0\0\0\0\0\0\0PFA1'
TWO_BLOBS = (
    b"PFA1abcdefghi\0\1PFA1"
    b'{"blobs":[{"type":"some-blob","fields":[1],"snapshot-id":2,"sequence-number":1,"offset":4,'
    b'"length":9},{"type":"other","fields":[],"snapshot-id":-1,"sequence-number":-1,"offset":13,'
    b'"length":2,"properties":{"b":"1","a":"2"}}],"properties":{"created-by":"Test 1234"}}'
    b"\x08\x01\0\0\0\0\0\0PFA1"
)


def written(*blobs: tuple[str, bytes], **options: Any) -> bytes:
    file = io.BytesIO()
    with puffin.create(file, **options) as writer:
        for kind, data in blobs:
            writer.add(kind, data)
    return file.getvalue()


def footer_of(data: bytes) -> Any:
    with puffin.open(io.BytesIO(data)) as reader:
        return json.loads(data[-reader.footer_size + 4 : -12])


# --- bytes ---


def test_a_file_without_blobs_has_the_bytes_of_java() -> None:
    assert written(properties={}) == EMPTY


def test_blobs_and_footer_have_the_bytes_of_java() -> None:
    file = io.BytesIO()
    with puffin.create(file, properties={"created-by": "Test 1234"}) as writer:
        first = writer.add("some-blob", b"abcdefghi", fields=[1], snapshot_id=2, sequence_number=1)
        second = writer.add("other", b"\0\1", properties={"b": "1", "a": "2"})
    assert file.getvalue() == TWO_BLOBS
    assert (writer.file_size, writer.footer_size) == (len(TWO_BLOBS), len(TWO_BLOBS) - 15)
    assert writer.blobs == (first, second)
    assert first == puffin.Blob("some-blob", (1,), 2, 1, offset=4, length=9)
    with puffin.open(io.BytesIO(TWO_BLOBS)) as reader:
        assert reader.blobs == (first, second)
        assert [reader.read(blob) for blob in reader.blobs] == [b"abcdefghi", b"\0\1"]
        assert reader.properties == {"created-by": "Test 1234"}
        assert reader.footer_size == writer.footer_size
        assert reader.extra == {}


def test_text_is_raw_utf8_and_escapes_are_those_of_java() -> None:
    name = 'é\u2028😀/\\u001f\x7f"\n\x1f\x0b'
    data = written(properties={name: "<&>"})
    payload = 'é\u2028😀/\\\\u001f\x7f\\"\\n\\u001F\\u000B":"<&>"'.encode()
    assert b'{"blobs":[],"properties":{"' + payload + b"}}" in data
    with puffin.open(io.BytesIO(data)) as reader:
        assert reader.properties == {name: "<&>"}


def test_the_codec_is_named_before_the_properties() -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        blob = writer.add("t", bytes(1000), codec="zstd", properties={"k": "v"})
    (members,) = footer_of(file.getvalue())["blobs"]
    assert list(members)[-2:] == ["compression-codec", "properties"]
    assert (blob.length, members["length"]) == (members["length"], blob.length)
    assert blob.length < 1000
    assert file.getvalue()[4:9] == bytes.fromhex("28b52ffd64")  # one segment, size, checksum


def test_a_file_says_who_created_it_unless_given_a_name() -> None:
    assert footer_of(written())["properties"] == {"created-by": f"Alcid {alcid.__version__}"}
    assert "properties" not in footer_of(written(properties={}))


def test_a_compressed_footer_is_flagged_and_read() -> None:
    data = written(("t", b"abc"), compress_footer=True)
    assert data[-8:] == b"\1\0\0\0PFA1"
    assert data[11:15] == bytes.fromhex("04224d18")
    with puffin.open(io.BytesIO(data)) as reader:
        assert [reader.read(blob) for blob in reader.blobs] == [b"abc"]
        assert reader.footer_size == len(data) - 7
        assert reader.properties == {"created-by": f"Alcid {alcid.__version__}"}


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PROPERTIES = st.dictionaries(TEXTS, TEXTS, max_size=3)
LONGS = st.integers(-(2**63), 2**63 - 1)
BLOBS = st.fixed_dictionaries(
    {
        "type": TEXTS,
        "data": st.binary(max_size=50),
        "fields": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
        "snapshot_id": LONGS,
        "sequence_number": LONGS,
        "properties": PROPERTIES,
        "codec": st.sampled_from([None, "lz4", "zstd"]),
    }
)


@given(st.lists(BLOBS, max_size=4), PROPERTIES, st.booleans())
def test_what_is_written_is_read(
    blobs: list[dict[str, Any]], properties: dict[str, str], compress_footer: bool
) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties=properties, compress_footer=compress_footer) as writer:
        for blob in blobs:
            writer.add(**blob)
    with puffin.open(file, footer_size=writer.footer_size) as reader:
        assert reader.blobs == writer.blobs
        assert reader.properties == properties
        for blob, blob_read in zip(blobs, reader.blobs, strict=True):
            assert reader.read(blob_read) == blob["data"]
            assert (blob_read.type, list(blob_read.fields)) == (blob["type"], blob["fields"])
            assert blob_read.snapshot_id == blob["snapshot_id"]
            assert blob_read.sequence_number == blob["sequence_number"]
            assert (blob_read.codec, blob_read.properties) == (blob["codec"], blob["properties"])
    assert writer.file_size == len(file.getvalue())


# --- reading ---


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "two.puffin"
    path.write_bytes(TWO_BLOBS)
    return path


def test_it_is_read_from_paths_files_and_sources(path: Path) -> None:
    with (
        path.open("rb") as buffered,
        path.open("rb", buffering=0) as raw,
        pa.OSFile(str(path)) as arrow,
        pa.memory_map(str(path)) as mapped,
    ):
        files: list[Any] = [str(path), path, buffered, raw, arrow, mapped, io.BytesIO(TWO_BLOBS)]
        for file in [*files, pa.BufferReader(TWO_BLOBS), BytesSource(TWO_BLOBS)]:
            with puffin.open(file) as reader:
                contents = [reader.read(blob) for blob in reversed(reader.blobs)]
            assert contents == [b"\0\1", b"abcdefghi"], file
        assert not any(file.closed for file in (buffered, raw, arrow, mapped))


def test_a_source_of_the_caller_stays_open(path: Path) -> None:
    with FileSource(path) as source:
        puffin.open(source).close()
        assert source.read(0, 4) == b"PFA1"


class Trickle(io.BytesIO):
    """Returns a few bytes at a time, as a socket may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 7))


def test_a_file_that_gives_little_at_a_time_is_read_whole() -> None:
    with puffin.open(Trickle(TWO_BLOBS)) as reader:
        assert reader.read(reader.blobs[0]) == b"abcdefghi"


def test_a_file_object_that_shrank_is_a_short_read() -> None:
    file = io.BytesIO(TWO_BLOBS)
    source = FileObjectSource(file)
    file.truncate(10)
    message = r"^<BytesIO>: short read at offset 8: found 2, expected 4$"
    with pytest.raises(FormatError, match=message):
        source.read(8, 4)


def test_what_cannot_be_read_by_range_is_refused(path: Path) -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe, os.fdopen(write_end, "wb"):
        message = r"^<BufferedReader>: a file that cannot seek"
        with pytest.raises(UnsupportedError, match=message):
            puffin.open(pipe)
    text = path.open(encoding="latin-1")
    with text, pytest.raises(UnsupportedError, match=r"two.puffin: opened as text"):
        puffin.open(text)  # type: ignore[arg-type]
    for wrong in (TWO_BLOBS, 5, None):
        with pytest.raises(UnsupportedError, match=r"^expected a path, a binary file or a Source"):
            puffin.open(wrong)  # type: ignore[arg-type]


def test_a_small_file_is_opened_with_one_read() -> None:
    source = CountingSource(BytesSource(TWO_BLOBS))
    reader = puffin.open(source)
    assert source.take() == [(0, len(TWO_BLOBS))]
    reader.read(reader.blobs[1])
    assert source.take() == [(13, 2)]


def test_a_large_file_is_opened_with_its_end_and_its_head() -> None:
    data = written(("t", bytes(100_000)))
    source = CountingSource(BytesSource(data))
    reader = puffin.open(source)
    assert source.take() == [(len(data) - 65536, 65536), (0, 4)]
    size = reader.footer_size
    assert puffin.open(source, footer_size=size).blobs == reader.blobs
    assert source.take() == [(len(data) - size, size), (0, 4)]


def test_a_large_footer_takes_one_read_more() -> None:
    data = written(*[("t" * 80_000, b"abc")])
    source = CountingSource(BytesSource(data))
    reader = puffin.open(source)
    assert reader.footer_size > 80_000
    rest = reader.footer_size - 65536
    assert source.take() == [(len(data) - 65536, 65536), (7, rest), (0, 4)]
    assert reader.blobs[0].type == "t" * 80_000
    assert puffin.open(source, footer_size=reader.footer_size).blobs == reader.blobs
    assert source.take() == [(7, reader.footer_size), (0, 4)]


@pytest.mark.parametrize(
    ("footer_size", "message"),
    [
        (0, "bad footer size given at offset 0: found 0, expected 16 to 28"),
        (-28, "bad footer size given at offset 0: found -28, expected 16 to 28"),
        (29, "bad footer size given at offset 0: found 29, expected 16 to 28"),
        (27, "footer of another size than given at offset 20: found 28, expected 27"),
    ],
)
def test_a_given_footer_size_must_be_that_of_the_file(footer_size: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        puffin.open(io.BytesIO(EMPTY), footer_size=footer_size)
    assert str(caught.value) == f"<BytesIO>: {message}"


def test_what_the_format_does_not_know_is_kept() -> None:
    payload = (
        b'{"x":[1.5],"blobs":[{"type":"?","fields":[],"snapshot-id":1,"sequence-number":1,'
        b'"offset":4,"length":0,"compression-codec":null,"why":{"not":null}}]}'
    )
    data = b"PFA1PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1"
    with puffin.open(io.BytesIO(data)) as reader:
        assert reader.extra == {"x": [1.5]}
        (blob,) = reader.blobs
        assert (blob.type, blob.codec, blob.extra) == ("?", None, {"why": {"not": None}})
        assert reader.read(blob) == b""


def test_a_repeated_key_counts_as_it_comes_last() -> None:
    payload = b'{"blobs":1,"properties":{"a":"1","a":"2"},"blobs":[]}'
    data = b"PFA1PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1"
    assert puffin.open(io.BytesIO(data)).properties == {"a": "2"}


def test_largest_bounds_compressed_blobs_only() -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        plain = writer.add("t", bytes(1000))
        packed = [writer.add("t", bytes(1000), codec=codec) for codec in ("zstd", "lz4")]
    with puffin.open(file, largest=999) as reader:
        assert reader.read(plain) == bytes(1000)
        for blob in packed:
            with pytest.raises(LimitError, match="it holds 1000 bytes, and 999 are allowed"):
                reader.read(blob)
    with puffin.open(file, largest=1000) as reader:
        assert [reader.read(blob) for blob in packed] == [bytes(1000)] * 2


def test_a_blob_of_another_file_is_refused() -> None:
    with puffin.open(io.BytesIO(TWO_BLOBS), largest=10) as reader:
        for offset, length in ((13, 3), (3, 1), (4, -1), (15, 1)):
            with pytest.raises(FormatError, match="blob of another file"):
                reader.read(puffin.Blob("t", (), 1, 1, offset, length))
        with pytest.raises(FormatError, match="unknown codec at offset 4: found 'gzip'"):
            reader.read(puffin.Blob("t", (), 1, 1, 4, 9, "gzip"))


def test_a_closed_reader_reads_nothing(path: Path) -> None:
    reader = puffin.open(path)
    reader.close()
    reader.close()
    with pytest.raises(AlcidError, match=r"two.puffin: the file is closed"):
        reader.read(reader.blobs[0])


def test_a_file_that_is_refused_is_closed(tmp_path: Path) -> None:
    bad = tmp_path / "bad.puffin"
    bad.write_bytes(TWO_BLOBS[:-1])

    def next_descriptor() -> int:
        descriptor = os.open(bad, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    before = next_descriptor()
    with pytest.raises(FormatError, match="bad tail magic"):
        puffin.open(bad)
    assert next_descriptor() == before


def test_blobs_can_be_hashed_and_pickled() -> None:
    with puffin.open(io.BytesIO(TWO_BLOBS)) as reader:
        assert len({*reader.blobs, *pickle.loads(pickle.dumps(reader.blobs))}) == 2
        assert repr(reader) == "<PuffinReader <BytesIO>, blobs: 2>"


# --- writing ---


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_blob_is_written_when_it_is_added() -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add("t", b"abc")
        assert file.getvalue() == b"PFA1abc"


def test_content_may_be_any_buffer() -> None:
    file = io.BytesIO()
    numbers = np.arange(3, dtype="<i4")
    with puffin.create(file) as writer:
        views: list[Any] = [bytearray(b"ab"), memoryview(b"cd"), numbers, pa.py_buffer(b"ef")]
        blobs = [writer.add("t", view, codec=codec) for view in views for codec in (None, "zstd")]
    with puffin.open(file) as reader:
        contents = [reader.read(blob) for blob in blobs]
    assert contents[::2] == contents[1::2] == [b"ab", b"cd", numbers.tobytes(), b"ef"]


def test_a_path_shows_nothing_before_the_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"older")
    with puffin.create(path, properties={}) as writer:
        writer.add("t", b"abc")
        assert path.read_bytes() == b"older"
        assert len(names_in(tmp_path)) == 2
    assert names_in(tmp_path) == ["a.puffin"]
    assert path.read_bytes() == written(("t", b"abc"), properties={})
    assert path.stat().st_size == writer.file_size


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    puffin.create(tmp_path / "a.puffin").finish()
    (tmp_path / "other").touch()
    assert (tmp_path / "a.puffin").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def interrupted() -> None:
        with puffin.create(tmp_path / "a.puffin") as writer:
            writer.add("t", b"abc")
            raise error

    with pytest.raises(error):
        interrupted()
    assert names_in(tmp_path) == []


def test_close_gives_up_a_file_that_is_not_finished(tmp_path: Path) -> None:
    with puffin.create(tmp_path / "a.puffin") as writer:
        writer.add("t", b"abc")
        writer.close()
    writer.close()
    assert names_in(tmp_path) == []
    with pytest.raises(AlcidError, match=r"^the Puffin file is closed: nothing can be added$"):
        writer.add("t", b"abc")


def test_a_file_that_cannot_take_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        puffin.create(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match=r"'.*/nowhere/a'"):
        puffin.create(tmp_path / "nowhere" / "a")
    writer = puffin.create(tmp_path / "late")
    (tmp_path / "late").mkdir()
    with pytest.raises(IsADirectoryError):
        writer.finish()
    assert names_in(tmp_path) == ["folder", "late"]
    with pytest.raises(AlcidError, match="known when it is finished"):
        _ = writer.file_size


def test_what_is_done_to_a_blob_does_not_reach_the_footer() -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add("t", b"", properties={"a": "b"}).properties["a"] = "c"
        writer.blobs[0].properties["a"] = "d"
    with puffin.open(file) as reader:
        assert reader.blobs[0].properties == {"a": "b"}


@pytest.mark.parametrize("file", [io.StringIO(), None, b"x"], ids=["text", "none", "bytes"])
def test_what_takes_no_bytes_is_refused(file: Any) -> None:
    with pytest.raises(UnsupportedError, match="expected a path or a binary file, found"):
        puffin.create(file)


def test_a_file_that_takes_nothing_is_an_error() -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            return 0

    with pytest.raises(AlcidError, match="took 0 bytes and no more"):
        puffin.create(Full())


def test_a_finished_file_takes_nothing_more(tmp_path: Path) -> None:
    with puffin.create(tmp_path / "a.puffin") as writer:
        for size in ("file_size", "footer_size"):
            with pytest.raises(AlcidError, match="known when it is finished"):
                getattr(writer, size)
        writer.finish()
        for more in (lambda: writer.add("t", b""), writer.finish):
            with pytest.raises(AlcidError, match=r"^the Puffin file is finished: nothing"):
                more()
    writer.close()
    assert names_in(tmp_path) == ["a.puffin"]


class FullDisk(io.BytesIO):
    """Has room for a few bytes only."""

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > 10:
            raise OSError(28, "No space left on device")
        return super().write(data)


def test_a_failed_write_is_not_passed_over() -> None:
    writer = puffin.create(FullDisk())
    with pytest.raises(OSError, match="No space left"):
        writer.add("t", bytes(100))
    message = r"^the Puffin file is incomplete: nothing can be added$"
    with pytest.raises(AlcidError, match=message), writer:
        pass  # a caller that caught the first error gets it again


def test_a_file_without_a_buffer_is_written_whole(tmp_path: Path) -> None:
    class Reluctant(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(memoryview(data)[:3])

    with Reluctant(tmp_path / "a.puffin", "w") as file, puffin.create(file) as writer:
        writer.add("t", b"abcdefgh")
    assert (tmp_path / "a.puffin").stat().st_size == writer.file_size
    with puffin.open(tmp_path / "a.puffin") as reader:
        assert reader.read(reader.blobs[0]) == b"abcdefgh"


def test_files_of_arrow_are_written(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    with puffin.create(sink, properties={}) as writer:
        writer.add("t", b"abc")
    assert sink.getvalue().to_pybytes() == written(("t", b"abc"), properties={})
    with pa.OSFile(str(tmp_path / "a.puffin"), "wb") as file, puffin.create(file) as writer:
        writer.add("t", b"abc")
    assert (tmp_path / "a.puffin").stat().st_size == writer.file_size


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"type": 5}, UnsupportedError, "type: expected text, found 5"),
        ({"type": "\ud800"}, UnsupportedError, "type: .* is not Unicode text"),
        ({"data": "text"}, UnsupportedError, "content of a blob: memoryview"),
        ({"data": np.arange(9)[::2]}, UnsupportedError, "content of a blob: memoryview"),
        ({"fields": [2**31]}, LimitError, "fields: 2147483648 does not fit 32 bits"),
        ({"fields": ["1"]}, UnsupportedError, "fields: expected an integer, found '1'"),
        ({"snapshot_id": 2**63}, LimitError, "snapshot_id: 9223372036854775808 does not fit 64"),
        ({"snapshot_id": 1.0}, UnsupportedError, "snapshot_id: expected an integer, found 1.0"),
        ({"sequence_number": -(2**63) - 1}, LimitError, "sequence_number: -92233"),
        ({"properties": {"a": 1}}, UnsupportedError, "a: expected text, found 1"),
        ({"properties": {1: "a"}}, UnsupportedError, "properties: expected text, found 1"),
        ({"properties": {"a": "\udfff"}}, UnsupportedError, "a: .* is not Unicode text"),
        ({"codec": "snappy"}, OptionError, "unknown codec 'snappy': expected one of lz4, zstd"),
    ],
)
def test_a_blob_that_is_refused_leaves_the_file_as_it_was(
    wrong: dict[str, Any], error: type[AlcidError], message: str
) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties={}) as writer:
        with pytest.raises(error, match=f"^{message}"):
            writer.add(**({"type": "t", "data": b"abc"} | wrong))
        writer.add("t", b"abc")
    assert file.getvalue() == written(("t", b"abc"), properties={})


def test_integers_of_numpy_and_booleans_are_written_as_integers() -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add("t", b"", fields=np.array([3, 4]), snapshot_id=np.int64(5), sequence_number=True)
    (members,) = footer_of(file.getvalue())["blobs"]
    assert (members["fields"], members["snapshot-id"]) == ([3, 4], 5)
    assert members["sequence-number"] is not True


def test_bad_properties_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"^n: expected text, found 1$"):
        puffin.create(tmp_path / "a.puffin", properties={"n": 1})  # type: ignore[dict-item]
    assert names_in(tmp_path) == []


def test_a_compressed_footer_beyond_what_is_read_is_not_written(tmp_path: Path) -> None:
    large = {"n": "x" * (4 << 20)}
    with (
        pytest.raises(LimitError, match=r"^a compressed footer holds at most 4194304 bytes"),
        puffin.create(tmp_path / "a.puffin", properties=large, compress_footer=True),
    ):
        pass
    assert names_in(tmp_path) == []


# --- deletion vectors ---


def vector_file(**changed: Any) -> tuple[io.BytesIO, puffin.Blob]:
    """A file of one deletion vector behind another blob, its metadata changed."""
    blob = {
        "type": "deletion-vector-v1",
        "data": DeletionVector([1, 5]).to_bytes(bits=64),
        "fields": [2147483645],
        "properties": {"referenced-data-file": "a.parquet", "cardinality": "2"},
    }
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add("t", b"abc")
        added = writer.add(**(blob | changed))
    return file, added


def test_deletion_vectors_are_written_as_java_does() -> None:
    vectors = {
        "s3://b/a.parquet": DeletionVector([1, 5, 1 << 33]),
        "s3://b/é.parquet": DeletionVector(range(100)),
        "s3://b/empty.parquet": DeletionVector(),
    }
    file = io.BytesIO()
    with puffin.create(file) as writer:
        for data_file, vector in vectors.items():
            writer.add_deletion_vector(vector, data_file)
    assert footer_of(file.getvalue())["blobs"][0] == {
        "type": "deletion-vector-v1",
        "fields": [2147483645],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(vectors["s3://b/a.parquet"].to_bytes(bits=64)),
        "properties": {"referenced-data-file": "s3://b/a.parquet", "cardinality": "3"},
    }
    assert list(writer.blobs[0].properties) == ["referenced-data-file", "cardinality"]
    with puffin.open(file) as reader:
        for blob, (data_file, vector) in zip(reader.blobs, vectors.items(), strict=True):
            assert blob.properties["referenced-data-file"] == data_file
            assert reader.read(blob) == vector.to_bytes(bits=64)
            assert reader.read_deletion_vector(blob) == vector


def test_a_deletion_vector_without_fields_is_read() -> None:
    file, blob = vector_file(fields=[])
    assert list(puffin.open(file).read_deletion_vector(blob)) == [1, 5]


FILE_ONLY = {"referenced-data-file": "a.parquet"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"type": "t"}, "not a deletion vector at offset 7: found 't'"),
        (
            {"codec": "zstd"},
            "compressed deletion vector at offset 7: found zstd, expected no codec",
        ),
        (
            {"fields": [1]},
            "bad fields of a deletion vector at offset 7: found [1], expected [214748",
        ),
        ({"properties": {}}, "without property 'referenced-data-file' at offset 7"),
        ({"properties": FILE_ONLY}, "deletion vector without property 'cardinality' at offset 7"),
        ({"properties": FILE_ONLY | {"cardinality": "3"}}, "at offset 7"),
        ({"data": DeletionVector([1, 5]).to_bytes(bits=32)}, "found 32 bits, expected 64 bits"),
        ({"data": b""}, "offset 7"),
    ],
)
def test_a_deletion_vector_that_contradicts_its_metadata_is_refused(
    changed: dict[str, Any], message: str
) -> None:
    file, blob = vector_file(**changed)
    with puffin.open(file) as reader, pytest.raises(FormatError) as caught:
        reader.read_deletion_vector(blob)
    assert message in str(caught.value)
    assert str(caught.value).startswith("<BytesIO>: ")


@pytest.mark.parametrize("text", ["", "-2", "+2", "2.0", " 2", "2\n", "٢", "2" * 20, "1_0"])
def test_a_cardinality_must_be_a_plain_number(text: str) -> None:
    file, blob = vector_file(properties=FILE_ONLY | {"cardinality": text})
    with puffin.open(file) as reader, pytest.raises(FormatError) as caught:
        reader.read_deletion_vector(blob)
    expected = f"bad property 'cardinality' at offset 7: found {text!r}, expected a number"
    assert str(caught.value) == f"<BytesIO>: {expected}"


def test_damage_of_a_deletion_vector_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    file, blob = vector_file()
    data = bytearray(file.getvalue())
    data[blob.offset + 4] ^= 1  # its magic
    path = tmp_path / "bad.puffin"
    path.write_bytes(data)
    with puffin.open(path) as reader, pytest.raises(FormatError) as caught:
        reader.read_deletion_vector(reader.blobs[1])
    assert caught.value.file == str(path)
    assert caught.value.offset == blob.offset + 4


def test_a_data_file_has_one_vector() -> None:
    with puffin.create(io.BytesIO()) as writer:
        writer.add_deletion_vector(DeletionVector([1]), "a.parquet")
        with pytest.raises(AlcidError, match=r"found a second one of 'a\.parquet'"):
            writer.add_deletion_vector(DeletionVector([2]), "a.parquet")
        with pytest.raises(AlcidError, match="found no data file"):
            writer.add_deletion_vector(DeletionVector([1]), "")


def test_arguments_of_other_classes_are_named() -> None:
    file = io.BytesIO()
    writer: Any
    with puffin.create(file) as writer:
        with pytest.raises(UnsupportedError, match="vector: found list, expected DeletionVector"):
            writer.add_deletion_vector([1], "a")
        with pytest.raises(UnsupportedError, match="sketch: found bytes, expected ThetaSketch"):
            writer.add_theta_sketch(b"", 1, snapshot_id=1, sequence_number=1)
        with pytest.raises(UnsupportedError, match="fields: found 1, expected a list of field ids"):
            writer.add("a", b"", fields=1)
    reader: Any
    with puffin.open(file) as reader:
        for read in (reader.read, reader.read_deletion_vector, reader.read_theta_sketch):
            with pytest.raises(UnsupportedError, match="blob: found int, expected Blob"):
                read(0)


# --- what is said of it ---


def test_a_footer_of_2_gibibytes_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footer_module, "_LARGEST", 12)
    assert len(write_footer([], {})) == 28
    monkeypatch.setattr(footer_module, "_LARGEST", 11)
    with pytest.raises(LimitError) as raised:
        write_footer([], {})
    assert str(raised.value) == "a footer holds less than 2 GiB of JSON, found 12 bytes"


def test_the_writer_is_named_with_its_version_if_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def installed(name: str) -> str:
        assert name == "alcid"
        return "1.2.3"

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(writer_module, "version", installed)
    assert created_by.__wrapped__() == "Alcid 1.2.3"
    monkeypatch.setattr(writer_module, "version", missing)
    assert created_by.__wrapped__() == "Alcid"


def test_blobs_are_copied_as_they_are_stored() -> None:
    file = io.BytesIO()
    with puffin.create(file, properties={}) as writer:
        writer.add("first", b"12345")
        writer.add("x", b"a" * 1000, fields=[1], snapshot_id=2, properties={"p": "q"}, codec="zstd")
    reader = puffin.open(file)
    blob = reader.blobs[1]
    stored = reader.read_stored(blob)

    other = io.BytesIO()
    with puffin.create(other, properties={}) as writer:
        copied = writer.add_stored(blob, stored)
        copied.properties["p"] = "changed"
        assert writer.blobs[0].properties == {"p": "q"}
        assert repr(writer) == f"<PuffinWriter: open, blobs: 1, bytes: {4 + len(stored)}>"
        with pytest.raises(UnsupportedError, match="blob"):
            writer.add_stored("x", b"")  # type: ignore[arg-type]
    assert repr(writer) == f"<PuffinWriter: finished, blobs: 1, bytes: {writer.file_size}>"
    again = puffin.open(other)
    assert again.blobs == (replace(blob, offset=4),)
    assert again.read(again.blobs[0]) == b"a" * 1000
    with pytest.raises(AlcidError, match=r"^the Puffin file is finished: nothing can be added$"):
        writer.add_stored(blob, stored)


def test_a_sketch_is_written_as_icebergs_statistics_are() -> None:
    sketch = ThetaSketch().update(pa.array([1, 2, 3]))
    file = io.BytesIO()
    with puffin.create(file, properties={}) as writer:
        blob = writer.add_theta_sketch(sketch, 7, snapshot_id=8, sequence_number=9)
        other = writer.add("other", b"")
    assert blob == puffin.Blob(
        type="apache-datasketches-theta-v1",
        fields=(7,),
        snapshot_id=8,
        sequence_number=9,
        offset=4,
        length=blob.length,
        codec="zstd",
        properties={"ndv": "3"},
    )
    reader = puffin.open(file)
    assert reader.read(blob) == sketch.to_bytes()
    assert reader.read_theta_sketch(blob) == sketch
    with pytest.raises(FormatError) as raised:
        reader.read_theta_sketch(other)
    assert str(raised.value) == (
        f"<BytesIO>: not a theta sketch at offset {other.offset}: "
        "found 'other', expected 'apache-datasketches-theta-v1'"
    )


@pytest.mark.parametrize("properties", [{}, {"by": "us"}])
def test_a_reader_shows_its_blobs(properties: dict[str, str]) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties=properties) as writer:
        writer.add("some-type", b"12", fields=[3, 4], properties={"a": "b", "c": "d"})
    reader = puffin.open(file)
    assert repr(reader) == "<PuffinReader <BytesIO>, blobs: 1>"
    title, parts = picture(reader)
    assert title == "Puffin file <BytesIO>"
    assert len(parts) == 1 + len(properties)
    shown = fragment_of(reader)
    for text in ("Blobs of &lt;BytesIO&gt;", "some-type", "3, 4", "a b, c d", *properties):
        assert text in shown
    assert ("Properties" in shown) == bool(properties)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            EMPTY[:19],
            "too short for a Puffin file at offset 0: found 19 bytes, expected at least 20",
        ),
        (
            b"XFA1" + EMPTY[4:-1] + b"2",
            "not a Puffin file: bad tail magic at offset 28: found 50464132, expected 50464131",
        ),
    ],
    ids=["short", "neither"],
)
def test_not_a_puffin_file_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as raised:
        puffin.open(io.BytesIO(data))
    assert str(raised.value) == f"<BytesIO>: {message}"


def test_blobs_that_are_not_what_is_asked_for_are_named() -> None:
    reader = puffin.open(io.BytesIO(TWO_BLOBS))
    with pytest.raises(FormatError) as raised:
        reader.read_deletion_vector(reader.blobs[0])
    assert str(raised.value) == (
        "<BytesIO>: not a deletion vector at offset 4: "
        "found 'some-blob', expected 'deletion-vector-v1'"
    )
    with pytest.raises(FormatError) as raised:
        reader.read(replace(reader.blobs[1], length=3))
    assert str(raised.value) == (
        "<BytesIO>: blob of another file at offset 13: found 3 bytes, expected an end before 15"
    )


# -- blobs that are written piece by piece, or copied ------------------------------------------


def test_a_streamed_blob_can_be_left_out_as_long_as_nothing_is_written() -> None:
    file = io.BytesIO()
    with puffin.PuffinWriter(file) as writer:
        with writer.stream("a") as blob:
            blob.write(b"12")
            with pytest.raises(UnsupportedError, match=r"^2 bytes of the blob are written"):
                blob.drop()
        with writer.stream("b") as blob:
            blob.drop()
    reader = puffin.PuffinReader(BytesSource(file.getvalue()))
    assert [(blob.type, blob.length) for blob in reader.blobs] == [("a", 2)]


def test_only_blobs_that_follow_each_other_are_copied_together() -> None:
    file = io.BytesIO()
    with puffin.PuffinWriter(file) as writer:
        for name in "abc":
            writer.add(name, name.encode() * 3)
    source = BytesSource(file.getvalue())
    first, second, third = puffin.PuffinReader(source).blobs
    copy = io.BytesIO()
    with puffin.PuffinWriter(copy) as writer:
        writer.copy_stored([], source)
        with pytest.raises(UnsupportedError, match=r"^blob at 10: expected one at 7$"):
            writer.copy_stored([first, third], source)
        writer.copy_stored([second, third], source)
    reader = puffin.PuffinReader(BytesSource(copy.getvalue()))
    assert [(blob.type, reader.read(blob)) for blob in reader.blobs] == [
        ("b", b"bbb"),
        ("c", b"ccc"),
    ]
