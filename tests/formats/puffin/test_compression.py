"""Frames of zstd and LZ4: what is written, and that only complete and correct ones are read."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import lz4.frame
import pytest
import xxhash
import zstandard

from alcid import (
    AlcidError,
    FormatError,
    LimitError,
    OptionError,
)
from alcid.formats.puffin import compression
from alcid.formats.puffin.compression import CODECS, compress, decompress
from alcid.testing import flips, truncations

TEXT = b"a whale of a whale of a whale of a time " * 3
CONTENTS = {
    "empty": b"",
    "one": b"x",
    "text": TEXT,
    "zeros": bytes(300_000),
    "noise": random.Random(7).randbytes(200_000),
}
KNOWN_READERS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lz4.frame.decompress,
    "zstd": zstandard.decompress,
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("codec", CODECS)
def test_content_returns_and_its_own_library_reads_the_frame(codec: str, content: bytes) -> None:
    frame = compress(codec, content)
    assert decompress(codec, frame, len(content)) == content
    assert KNOWN_READERS[codec](frame) == content


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_frames_state_size_and_checksum(size: int) -> None:
    header = zstandard.get_frame_parameters(compress("zstd", bytes(size)))
    assert (header.content_size, header.has_checksum, header.dict_id) == (size, True, 0)
    frame = compress("lz4", bytes(size))
    has_size_and_checksum = 0x0C
    assert frame[4] & has_size_and_checksum == has_size_and_checksum
    assert struct.unpack_from("<Q", frame, 6) == (size,)


def test_a_view_is_compressed_like_its_bytes() -> None:
    for codec in CODECS:
        assert compress(codec, memoryview(TEXT)) == compress(codec, TEXT)


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^unknown codec 'ZSTD': expected one of lz4, zstd$"):
        compress("ZSTD", b"")
    with pytest.raises(FormatError, match=r"^f: unknown codec at offset 4: found 'gzip'$"):
        decompress("gzip", b"", 10, file="f", offset=4)


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_counts_content_and_is_checked_first(codec: str) -> None:
    frame = compress(codec, TEXT)
    with pytest.raises(LimitError) as caught:
        decompress(codec, frame[:20], len(TEXT) - 1, file="f", offset=4)
    assert (
        str(caught.value)
        == f"f: {codec} frame at offset 4: it holds 120 bytes, and 119 are allowed"
    )


def lz4_header(size: int, flags: int = 0x6C) -> bytes:
    """The header of a frame, with a correct checksum."""
    described = bytes((flags, 0x40)) + struct.pack("<Q", size)
    return b"\x04\x22\x4d\x18" + described + bytes((xxhash.xxh32_intdigest(described) >> 8 & 255,))


def zstd_header(size: int) -> bytes:
    """The header of a frame that has a window of 1 MiB and a content size of 8 bytes."""
    return bytes.fromhex("28b52ffd c0 50") + struct.pack("<Q", size)


def zstd_raw(*blocks: bytes) -> bytes:
    """Blocks that are not compressed, the last one marked."""
    last = len(blocks) - 1
    heads = [(len(block) << 3 | (index == last)) for index, block in enumerate(blocks)]
    pairs = zip(heads, blocks, strict=True)
    return b"".join(head.to_bytes(3, "little") + block for head, block in pairs)


ZSTD, LZ4 = compress("zstd", TEXT), compress("lz4", TEXT)
LZ4_BODY = LZ4[15:]
WITHOUT_SIZE = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
WITH_DICTIONARY = bytes.fromhex("28b52ffd 23 05060708 78") + zstd_raw(TEXT)
REFUSED = [
    ("zstd", b"", "bad magic at offset 9: found nothing, expected 28b52ffd"),
    ("zstd", LZ4, "bad magic at offset 9: found 04224d18, expected 28b52ffd"),
    ("zstd", ZSTD[:5], "bad header ("),
    ("zstd", bytes.fromhex("502a4d18 04000000 61626364"), "bad magic"),
    ("zstd", WITHOUT_SIZE, "does not state its content size at offset 9"),
    ("zstd", WITH_DICTIONARY, "needs a dictionary at offset 9: found 134678021, expected none"),
    ("zstd", ZSTD + b"x", "unused data"),
    ("zstd", ZSTD + ZSTD, "unused data"),
    ("zstd", ZSTD[:-1], "did not decompress full frame"),
    ("zstd", ZSTD[:-1] + b"?", "match checksum"),
    ("zstd", zstd_header(3) + zstd_raw(b"abcd"), "damaged"),
    ("zstd", zstd_header(5) + zstd_raw(b"abcd"), "damaged"),
    ("zstd", compress("zstd", b"") + b"xyz", "other bytes behind it at offset 9: found 3 bytes"),
    ("zstd", compress("zstd", b"") + bytes(99), "behind it at offset 9: found 99 bytes"),
    ("zstd", compress("zstd", b"")[:-1], "cut off"),
    ("zstd", zstd_header(0) + zstd_raw(b"abcd"), "damaged"),
    ("zstd", zstd_header(0) + zstd_raw(b"abcd", bytes(99)), "damaged"),
    ("lz4", b"", "bad magic at offset 9: found nothing, expected 04224d18"),
    ("lz4", ZSTD, "bad magic at offset 9: found 28b52ffd, expected 04224d18"),
    ("lz4", LZ4[:13], "does not state its content size"),
    ("lz4", lz4.frame.compress(TEXT, store_size=False), "does not state its content size"),
    ("lz4", lz4_header(120, 0x6D) + LZ4_BODY, "needs a dictionary"),
    ("lz4", lz4_header(120, 0xAC) + LZ4_BODY, "damaged (LZ4F_decompress failed"),
    ("lz4", LZ4 + b"x", "other bytes behind it at offset 9: found 1 bytes, expected none"),
    ("lz4", LZ4 + LZ4, f"other bytes behind it at offset 9: found {len(LZ4)} bytes"),
    ("lz4", LZ4[:-1], "cut off"),
    ("lz4", LZ4[:14], "cut off"),
    ("lz4", LZ4[:-1] + b"?", "ERROR_contentChecksum_invalid"),
    ("lz4", lz4_header(119) + LZ4_BODY, "ERROR_frameSize_wrong"),
    ("lz4", lz4_header(99) + LZ4_BODY, "holds more than it states at offset 9: expected 99 bytes"),
    ("lz4", lz4_header(0) + LZ4_BODY, "holds more than it states at offset 9: expected 0 bytes"),
    ("lz4", lz4_header(121) + LZ4_BODY, "ERROR_frameSize_wrong"),
    ("lz4", LZ4[:14] + bytes((LZ4[14] ^ 1,)) + LZ4[15:], "ERROR_headerChecksum_invalid"),
]


@pytest.mark.parametrize(
    ("codec", "frame", "message"),
    [
        pytest.param(*case, id=f"{case[0]}-{number}-{case[2]}")
        for number, case in enumerate(REFUSED)
    ],
)
def test_a_frame_that_is_not_whole_and_honest_is_refused(
    codec: str, frame: bytes, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        decompress(codec, frame, 1000, file="f", offset=9)
    assert str(caught.value).startswith(f"f: {codec} frame: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_frames_made_here_are_read_when_they_are_honest() -> None:
    assert decompress("zstd", zstd_header(4) + zstd_raw(b"ab", b"cd"), 4) == b"abcd"
    assert decompress("zstd", zstd_header(0) + zstd_raw(b""), 0) == b""
    assert decompress("lz4", lz4_header(120) + LZ4_BODY, 120) == TEXT


@pytest.mark.parametrize("content", [b"", b"x", TEXT])
@pytest.mark.parametrize("codec", CODECS)
def test_damage_never_gives_other_content(codec: str, content: bytes) -> None:
    frame = compress(codec, content)
    for damage in truncations(frame):
        with pytest.raises(AlcidError):
            decompress(codec, damage.data, 1 << 20)
    seen = 0
    for damage in flips(frame):
        try:
            decompressed = decompress(codec, damage.data, 1 << 20)
        except AlcidError:
            seen += 1
        else:
            assert decompressed == content, damage.what
    assert seen >= 2 * len(frame) - 1  # LZ4 has more than one way to repeat the same bytes


def test_a_frame_that_holds_less_than_it_states_is_refused() -> None:
    """The libraries notice it themselves; if one did not, it would be noticed here."""
    frame = bytearray(lz4.frame.compress(b"abc", store_size=True))
    frame[6] = 4
    frame[14] = xxhash.xxh32_intdigest(bytes(frame[4:14])) >> 8 & 0xFF
    with pytest.raises(FormatError) as raised:
        decompress("lz4", bytes(frame), 10, file="x", offset=7)
    assert str(raised.value).startswith("x: lz4 frame: damaged (LZ4F_decompress failed")

    def error(problem: str, **details: object) -> FormatError:
        return FormatError(f"frame: {problem}", **details)  # type: ignore[arg-type]

    with pytest.raises(FormatError) as raised:
        compression._checked(b"abc", 4, True, b"", error)
    assert str(raised.value) == "frame: holds less than it states: found 3, expected 4 bytes"
    assert compression._checked(b"abcd", 4, True, b"", error) == b"abcd"
