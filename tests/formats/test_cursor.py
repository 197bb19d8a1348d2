from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError, LimitError
from alcid.formats.cursor import (
    Cursor,
    Writer,
    decode_modified_utf8,
    encode_modified_utf8,
)
from alcid.formats.source import BytesSource, FileSource, Section


def cursor(data: bytes, window: int = 512) -> Cursor:
    return Cursor(Section(BytesSource(data, "x.index")), window=window)


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("", ""),
        ("a", "61"),
        ("\0", "c080"),
        ("é", "c3a9"),
        ("€", "e282ac"),
        ("🐧", "eda0bdedb0a7"),
    ],
)
def test_modified_utf8_as_java_writes_it(text: str, encoded: str) -> None:
    assert encode_modified_utf8(text).hex() == encoded
    assert decode_modified_utf8(bytes.fromhex(encoded)) == text


@given(st.text())
def test_modified_utf8_has_no_nul_and_comes_back(text: str) -> None:
    assert b"\0" not in encode_modified_utf8(text)
    assert decode_modified_utf8(encode_modified_utf8(text)) == text


def test_a_name_beyond_65535_bytes_is_refused() -> None:
    assert len(encode_modified_utf8("x" * 65535)) == 65535
    with pytest.raises(OverflowError, match="65536 bytes is too long: at most 65535"):
        encode_modified_utf8("x" * 65536)


def test_bad_utf8_names_its_offset() -> None:
    with pytest.raises(FormatError, match=r"x.index: bad modified UTF-8 at offset 3"):
        cursor(b"\0\2a\xff").utf()


@given(
    st.lists(
        st.tuples(st.sampled_from(["u8", "i32", "i64", "utf"]), st.integers(0, 255)), max_size=30
    ),
    st.integers(1, 40),
)
def test_what_was_written_is_read_with_any_window(
    fields: list[tuple[str, int]], window: int
) -> None:
    writer = Writer()
    for kind, value in fields:
        getattr(writer, kind)("é" * (value % 7) if kind == "utf" else value)
    reading = cursor(writer.to_bytes(), window)
    for kind, value in fields:
        assert getattr(reading, kind)() == ("é" * (value % 7) if kind == "utf" else value)
    assert reading.position == writer.length


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda c: c.i32(), "x.index: truncated at offset 0: found 3 bytes, expected 4"),
        (lambda c: c.skip(4), "x.index: truncated at offset 0: found 3 bytes, expected 4"),
        (lambda c: c.flag("null"), "x.index: bad null flag at offset 0: found 7, expected 0 or 1"),
        (
            lambda c: c.version("bsi", 1),
            "x.index: unknown bsi version at offset 0: found 7, expected 1",
        ),
        (lambda c: c.section.section(2, 2), "x.index: part outside of its section at offset 2"),
        (lambda c: Section(c.section.source, 2, 2), "x.index: section outside of the file"),
    ],
    ids=["i32", "skip", "flag", "version", "part", "section"],
)
def test_errors_name_file_offset_found_and_expected(read: object, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read(cursor(b"\7\0\0"))  # type: ignore[operator]
    assert str(error.value).startswith(message)


def test_a_count_is_not_negative_and_not_above_its_limit() -> None:
    with pytest.raises(
        FormatError, match="bad row count at offset 0: found -1, expected not negative"
    ):
        cursor(b"\xff\xff\xff\xff").count("row count")
    with pytest.raises(FormatError, match="bad row count at offset 0: found 9, expected 0 to 8"):
        cursor(b"\0\0\0\x09").count("row count", 8)


def test_an_index_beyond_two_gibibytes_is_refused_before_it_is_joined() -> None:
    half = bytes(1 << 30)  # the same object twice: no extra memory
    with pytest.raises(LimitError, match="at most 2147483647 bytes, found 2147483648"):
        Writer().raw(half).raw(half).to_bytes()


def test_a_number_beyond_32_bits_is_refused() -> None:
    with pytest.raises(LimitError, match="2147483648 does not fit the 32 bits"):
        Writer().i32(0, 1 << 31)


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(b"0123456789")
    with FileSource(path) as source:
        assert source.read(8, 2) == b"89"
        path.write_bytes(b"0123")
        with pytest.raises(FormatError, match=r"short read at offset 2: found 2, expected 8"):
            source.read(2, 8)


@pytest.mark.parametrize("text", ["a\ud800", "\udc00", "\udc00\ud800"])
def test_half_of_a_surrogate_pair_comes_back_as_java_has_it(text: str) -> None:
    assert decode_modified_utf8(encode_modified_utf8(text)) == text
