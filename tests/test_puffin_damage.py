"""Damaged Puffin files: refused with a reason, or read correctly; never more than they hold."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import xxhash
import zstandard

from alcid import AlcidError, FormatError
from alcid.formats import puffin
from alcid.formats.deletion_vector import DeletionVector
from alcid.testing import flips, truncations

CONTENT = b"a whale of a whale of a time "
MEGABYTE = 1 << 20


def sample(codec: str | None, *, compress_footer: bool = False) -> bytes:
    file = io.BytesIO()
    properties = {"created-by": "é"}
    with puffin.create(file, properties=properties, compress_footer=compress_footer) as writer:
        writer.add("first", CONTENT, fields=[1, 2], codec=codec, properties={"ndv": "3"})
        writer.add("second", b"", codec=codec)
        writer.add("third", CONTENT * 2, snapshot_id=7, sequence_number=8, codec=codec)
    return file.getvalue()


def vector_sample() -> bytes:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add_deletion_vector(DeletionVector([3, 5, 70_000]), "a.parquet")
        writer.add_deletion_vector(DeletionVector([1 << 33]), "b.parquet")
    return file.getvalue()


SAMPLES = {
    "plain": sample(None),
    "zstd": sample("zstd"),
    "lz4": sample("lz4"),
    "lz4-footer": sample(None, compress_footer=True),
    "vectors": vector_sample(),
}


def read_all(data: bytes) -> list[tuple[puffin.Blob, Any]]:
    """Every blob with its content; deletion vectors as such."""
    with puffin.open(io.BytesIO(data)) as reader:
        return [
            (blob, reader.read_deletion_vector(blob) if is_vector(blob) else reader.read(blob))
            for blob in reader.blobs
        ]


def is_vector(blob: puffin.Blob) -> bool:
    return blob.type == "deletion-vector-v1"


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES)
def test_a_file_that_is_cut_off_is_refused(data: bytes) -> None:
    assert read_all(data)
    for damage in truncations(data):
        with pytest.raises(FormatError):
            read_all(damage.data)


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES)
def test_a_file_that_lost_its_beginning_is_refused(data: bytes) -> None:
    for start in range(1, len(data)):
        with pytest.raises(FormatError):
            read_all(data[start:])


def as_stored(data: bytes, blob: puffin.Blob) -> Any:
    """What a blob is, determined without the reader."""
    stored = data[blob.offset : blob.offset + blob.length]
    if is_vector(blob):
        return DeletionVector.from_bytes(stored)
    if blob.codec is None:
        return stored
    return {"zstd": zstandard.decompress, "lz4": lz4.frame.decompress}[blob.codec](stored)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_changed_byte_is_refused_or_read_as_it_is(name: str) -> None:
    data, whole = SAMPLES[name], read_all(SAMPLES[name])
    blobs_end = len(data) - puffin.open(io.BytesIO(data)).footer_size
    blobs, payload = range(4, blobs_end), range(blobs_end + 4, len(data) - 12)
    for damage in flips(data):
        position, read = int(damage.what.split()[1]), None
        try:
            read = read_all(damage.data)
        except AlcidError:
            pass
        except Exception as error:
            error.add_note(damage.what)
            raise
        if read is not None:
            assert position in blobs or position in payload, damage.what  # never in fixed parts
            assert read == [(b, as_stored(damage.data, b)) for b, _ in read], damage.what
        if position in blobs and name in {"plain", "lz4-footer"}:
            assert read is not None, damage.what  # nothing there could be checked
            assert [blob for blob, _ in read] == [blob for blob, _ in whole]
        elif position in blobs or name == "lz4-footer":
            assert read in (None, whole), damage.what  # a checksum covers it


@pytest.mark.parametrize("name", ["plain", "zstd", "vectors"])
def test_json_that_stays_valid_is_read_as_it_says(name: str) -> None:
    """A changed letter in a type, or digit in an id, is damage that nobody could notice."""
    data = SAMPLES[name]
    for damage in flips(data):
        try:
            with puffin.open(io.BytesIO(damage.data)) as reader:
                footer = json.loads(damage.data[-reader.footer_size + 4 : -12])
        except FormatError:
            continue
        assert [blob.type for blob in reader.blobs] == [b["type"] for b in footer["blobs"]]
        assert [blob.offset for blob in reader.blobs] == [b["offset"] for b in footer["blobs"]]
        assert reader.properties == footer.get("properties", {})


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def file_of(
    payload: Any, *, size: int | None = None, flags: int = 0, blobs: bytes = b"0123456789"
) -> bytes:
    """A file with this footer, its JSON as bytes or as values."""
    text = payload if isinstance(payload, bytes) else compact(payload)
    length = len(text) if size is None else size
    return b"".join((b"PFA1", blobs, b"PFA1", text, struct.pack("<iI", length, flags), b"PFA1"))


BLOB: dict[str, Any] = {
    "type": "t",
    "fields": [1],
    "snapshot-id": 2,
    "sequence-number": 3,
    "offset": 4,
    "length": 10,
}
NONE: dict[str, Any] = {"blobs": []}


def blob_facts(**changed: Any) -> dict[str, Any]:
    """A footer of one blob, its members changed; the value `...` leaves one out."""
    members = BLOB | {name.replace("_", "-"): value for name, value in changed.items()}
    return {"blobs": [{name: value for name, value in members.items() if value is not ...}]}


def text_of(value: Any, old: bytes, new: bytes) -> bytes:
    text = compact(value)
    assert text.count(old) == 1
    return text.replace(old, new)


DEEP = b'{"blobs":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DIGITS = b"9" * 5000
LONG = "an integer of 64 bits"
NOT_LONGS: list[Any] = [None, "1", 1.0, True, [], {}, 2**63, -(2**63) - 1]
NOT_FIELDS: list[Any] = [None, "1", 1, {}, ["1"], [1.0], [True], [None], [[1]], [2**31], [-(2**32)]]
NOT_CODECS: list[Any] = ["snappy", "ZSTD", "", 1, False, ["zstd"], {}]
FOOTERS: list[tuple[bytes, str]] = [
    (
        file_of(NONE, size=-1),
        "bad size of the footer's JSON at offset 30: found -1, expected 0 to 22",
    ),
    (
        file_of(NONE, size=23),
        "bad size of the footer's JSON at offset 30: found 23, expected 0 to 22",
    ),
    (file_of(NONE, size=-(2**31)), "bad size of the footer's JSON"),
    (file_of(NONE, size=2**31 - 1), "bad size of the footer's JSON"),
    (file_of(NONE, size=11), "bad footer magic at offset 15: found 4641317b, expected 50464131"),
    (file_of(NONE, size=0), "bad footer magic"),
    (
        file_of(b"", blobs=b""),
        "footer: not JSON (Expecting value: line 1 column 1 (char 0)) at offset 8",
    ),
    *(
        (file_of(NONE, flags=1 << bit), f"unknown flag: byte {bit // 8}, bit {bit % 8} at offset")
        for bit in range(1, 32)
    ),
    (file_of(NONE, flags=0x8000), "unknown flag: byte 1, bit 7 at offset 35: found 0x80"),
    (
        file_of(NONE, flags=1),
        "lz4 frame: bad magic at offset 18: found 7b22626c, expected 04224d18",
    ),
    (file_of(b'{"blobs":[]}xx'), "footer: not JSON (Extra data"),
    (file_of(b'{"blobs":[]'), "footer: not JSON ("),
    (file_of(b"\xef\xbb\xbf" + b'{"blobs":[]}'), "footer: not JSON ("),
    (
        file_of('{"blobs":[]}'.encode("utf-16")),
        "footer: not UTF-8 (invalid start byte, byte 0 of it)",
    ),
    (file_of(b'{"blobs":[],"a":"\xc3"}'), "footer: not UTF-8 (invalid continuation byte, byte 17"),
    (file_of(b'{"blobs":[],"a":"\xed\xa0\x80"}'), "footer: not UTF-8"),
    (file_of(b'{"blobs":[],"a":NaN}'), "footer: not JSON (NaN is not a number of JSON)"),
    (file_of(b'{"blobs":[],"a":-Infinity}'), "footer: not JSON (-Infinity is not a number"),
    (file_of(DEEP), "footer: nested too deeply at offset 18"),
    (file_of(b'{"blobs":' + b"[" * 100_000), "footer: nested too deeply at offset 18"),
    (file_of(b'{"blobs":[],"a":' + DIGITS + b"}"), "footer: not JSON (Exceeds the limit"),
    (file_of([]), "footer: not an object at offset 18: found []"),
    (file_of(None), "footer: not an object at offset 18: found None"),
    (file_of({}), "footer: missing 'blobs' at offset 18"),
    (file_of({"blobs": None}), "footer: bad 'blobs' at offset 18: found None, expected an array"),
    (file_of({"blobs": {}}), "footer: bad 'blobs' at offset 18: found {}, expected an array"),
    (
        file_of(NONE | {"properties": None}),
        "footer: bad 'properties' at offset 18: found None, expected",
    ),
    (file_of(NONE | {"properties": []}), "footer: bad 'properties'"),
    (file_of(NONE | {"properties": {"a": 1}}), "footer: bad 'properties.a' at offset 18: found 1"),
    (
        file_of(NONE | {"properties": {"a": None}}),
        "footer: bad 'properties.a' at offset 18: found None",
    ),
    (
        file_of(NONE | {"properties": {"a": "\ud800"}}),
        "bad 'properties.a' at offset 18: found '\\ud800', expected Unicode text",
    ),
    (file_of(NONE | {"properties": {"\udfff": "a"}}), "footer: bad 'properties' at offset 18"),
    (file_of({"blobs": [BLOB, 5]}), "blob 1: not an object at offset 18: found 5"),
    (file_of({"blobs": [BLOB, None]}), "blob 1: not an object at offset 18: found None"),
    *(
        (
            file_of(blob_facts(**{name.replace("-", "_"): ...})),
            f"blob 0: missing '{name}' at offset 18",
        )
        for name in BLOB
    ),
    *(
        (
            file_of(blob_facts(**{name: value})),
            f"blob 0: bad '{name.replace('_', '-')}' at offset 18: found",
        )
        for name in ("snapshot_id", "sequence_number", "offset", "length")
        for value in NOT_LONGS
    ),
    (
        file_of(blob_facts(offset=0)),
        "blob 0: range outside of the blobs at offset 18: found 10 bytes",
    ),
    (file_of(blob_facts(offset=2**63)), f"found 9223372036854775808, expected {LONG}"),
    (
        file_of(blob_facts(offset=True)),
        f"blob 0: bad 'offset' at offset 18: found True, expected {LONG}",
    ),
    (
        file_of(text_of(blob_facts(), b'"length":10', b'"length":1e1')),
        f"found 10.0, expected {LONG}",
    ),
    (
        file_of(text_of(blob_facts(), b'"length":10', b'"length":' + DIGITS)),
        "footer: not JSON (Exceeds",
    ),
    (file_of(text_of(blob_facts(), b'"length":10', b'"length":' + b"9" * 4000)), "bad 'length'"),
    *(
        (file_of(blob_facts(fields=value)), "blob 0: bad 'fields' at offset 18: found")
        for value in NOT_FIELDS
    ),
    (file_of(blob_facts(fields=[7, 2**31])), "found 2147483648, expected an integer of 32 bits"),
    *(
        (file_of(blob_facts(type=value)), "blob 0: bad 'type' at offset 18: found")
        for value in (None, 1, True, ["t"], "\ud800")
    ),
    *(
        (
            file_of(blob_facts(compression_codec=value)),
            "blob 0: unknown 'compression-codec' at offset 18",
        )
        for value in NOT_CODECS
    ),
    (file_of(blob_facts(properties=None)), "blob 0: bad 'properties' at offset 18: found None"),
    (
        file_of(blob_facts(properties={"ndv": 5})),
        "blob 0: bad 'properties.ndv' at offset 18: found 5",
    ),
    *(
        (
            file_of(blob_facts(offset=offset, length=length)),
            f"blobs at offset 18: found {length} bytes from {offset}, expected within 4 to 14",
        )
        for offset, length in [
            *((0, 8), (3, 1), (4, 11), (13, 2), (15, 0), (14, 1), (4, -1), (-1, 1), (-(2**63), 0)),
            *((2**63 - 1, 2**63 - 1), (4, 2**32), (10**6, 1), (5, 2**63 - 1), (2**63 - 1, 0)),
        ]
    ),
]


@pytest.mark.parametrize(
    ("data", "message"),
    [pytest.param(*case, id=f"{number}-{case[1][:40]}") for number, case in enumerate(FOOTERS)],
)
def test_a_bad_footer_is_refused_when_the_file_is_opened(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        puffin.open(io.BytesIO(data))
    assert str(caught.value).startswith("<BytesIO>: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_limits_of_a_good_footer_are_read() -> None:
    extremes = blob_facts(
        fields=[2**31 - 1, -(2**31)], snapshot_id=2**63 - 1, sequence_number=-(2**63)
    )
    for footer in (
        blob_facts(),
        extremes,
        blob_facts(offset=14, length=0),
        blob_facts(offset=4, length=0),
        NONE,
    ):
        assert len(puffin.open(io.BytesIO(file_of(footer))).blobs) == len(footer["blobs"])
    assert puffin.open(io.BytesIO(file_of(b' {"blobs" : [ ] }\n'))).blobs == ()


# --- frames that hold far more than their bytes ---


def lz4_frame(size: int, body: bytes) -> bytes:
    described = bytes((0x68, 0x70)) + struct.pack("<Q", size)
    checksum = xxhash.xxh32_intdigest(described) >> 8 & 255
    return b"\x04\x22\x4d\x18" + described + bytes((checksum,)) + body


def zstd_frame(size: int, body: bytes) -> bytes:
    return bytes.fromhex("28b52ffdc058") + struct.pack("<Q", size) + body


def zstd_zeros(size: int) -> bytes:
    """Blocks that repeat one byte, 128 KiB each."""
    block = 128 << 10
    repeated = (block << 3 | 2).to_bytes(3, "little") + b"\0"
    last = (block << 3 | 3).to_bytes(3, "little") + b"\0"
    return repeated * (size // block - 1) + last


def lz4_zeros(size: int) -> bytes:
    """The blocks and the end of a frame of zeros."""
    frame: bytes = lz4.frame.compress(bytes(size), block_size=7, block_linked=False)
    assert frame[4] == 0x68  # as in `lz4_frame`, whose blocks may be of 4 MiB
    return frame[15:]


def bombs(codec: str) -> dict[str, bytes]:
    frame, zeros = (zstd_frame, zstd_zeros) if codec == "zstd" else (lz4_frame, lz4_zeros)
    much = 100 * MEGABYTE
    return {
        "states 1 TB": frame(1 << 40, zeros(MEGABYTE)),
        "states all but 2^64": frame((1 << 64) - 3, zeros(MEGABYTE)),
        "states 100 MiB and holds them": frame(much, zeros(much)),
        "states 10 bytes and holds 100 MiB": frame(10, zeros(much)),
        "states nothing and holds 100 MiB": frame(0, zeros(much)),
        "states 10 bytes, holds 100 MiB, is cut off": frame(10, zeros(much)[:-1]),
        "states nothing, holds 100 MiB, is cut off": frame(0, zeros(much)[:-1]),
        "states 4 MiB and holds one": frame(4 * MEGABYTE, zeros(MEGABYTE)),
    }


PROCESS = """
import json, os, resource, sys, time
from alcid import AlcidError
from alcid.formats import puffin

def attempt(path):
    try:
        with puffin.open(path, largest=32 << 20) as reader:
            return sum(len(reader.read(blob)) for blob in reader.blobs)
    except AlcidError as error:
        return str(error)

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

attempt(sys.argv[1])
for path in sys.argv[2:]:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
        continue
    before, start = peak(), time.perf_counter()
    outcome = attempt(path)
    print(json.dumps([outcome, time.perf_counter() - start, peak() - before]), flush=True)
    os._exit(0)
"""


def as_blob(codec: str) -> Callable[[bytes], bytes]:
    return lambda frame: file_of(
        blob_facts(length=len(frame), compression_codec=codec), blobs=frame
    )


def as_footer(frame: bytes) -> bytes:
    return file_of(frame, flags=1)


@pytest.mark.parametrize(
    ("codec", "wrap"),
    [
        pytest.param("zstd", as_blob("zstd"), id="zstd"),
        pytest.param("lz4", as_blob("lz4"), id="lz4"),
        pytest.param("lz4", as_footer, id="lz4-footer"),
    ],
)
def test_a_frame_that_holds_too_much_costs_neither_time_nor_memory(
    codec: str, wrap: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    frames = bombs(codec)
    harmless = tmp_path / "harmless"
    harmless.write_bytes(SAMPLES["zstd" if codec == "zstd" else "lz4"])
    paths = [tmp_path / str(number) for number in range(len(frames))]
    for path, frame in zip(paths, frames.values(), strict=True):
        path.write_bytes(wrap(frame))
    # Only the peak of a process shows what these libraries allocate. In a fork it begins at what is
    # in use; in a new program it would begin at the peak of the one that started it.
    command = [sys.executable, "-c", PROCESS, *map(str, (harmless, *paths))]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    for what, (outcome, seconds, memory) in zip(frames, lines, strict=True):
        assert isinstance(outcome, str), what
        assert f"{codec} frame" in outcome, what
        assert seconds < 1, (what, seconds)
        assert memory < 16 * MEGABYTE, (what, memory)
    for what, (outcome, *_) in zip(frames, lines, strict=True):
        too_large = what.startswith(("states 1 TB", "states all", "states 100 MiB"))
        assert ("are allowed" in outcome) is too_large, (what, outcome)


def test_frames_made_here_are_read_when_they_are_honest() -> None:
    for codec, frame, zeros in (("zstd", zstd_frame, zstd_zeros), ("lz4", lz4_frame, lz4_zeros)):
        data = as_blob(codec)(frame(2 * MEGABYTE, zeros(2 * MEGABYTE)))
        assert [content for _, content in read_all(data)] == [bytes(2 * MEGABYTE)]
