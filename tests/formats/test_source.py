"""Sources of bytes: what is not a binary file is refused, and what was opened is closed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from alcid import AlcidError, FormatError, UnsupportedError
from alcid.formats.source import (
    BytesSource,
    FileObjectSource,
    FileSource,
    Range,
    Section,
    Source,
    open_with,
    read_each,
)


def test_bytes_are_taken_from_any_buffer_and_nothing_else() -> None:
    source = BytesSource(memoryview(b"abcdef")[::2])
    assert (source.data, source.size, source.name) == (b"ace", 3, "<bytes>")
    assert source.read(1, 2) == b"ce"
    with pytest.raises(UnsupportedError, match=r"^expected bytes, found str$"):
        BytesSource("text")  # type: ignore[arg-type]


def test_ranges_are_read_one_by_one() -> None:
    first, other = BytesSource(b"abcdef"), BytesSource(b"012")
    assert read_each([Range(first, 1, 2), Range(other, 0, 3)]) == [b"bc", b"012"]


def test_a_directory_or_a_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in ((tmp_path, "a directory"), (pipe, "a pipe or a device")):
        with pytest.raises(FormatError) as raised:
            FileSource(path)
        assert str(raised.value) == f"{path}: cannot be read: found {kind}, expected a file"


def test_a_file_is_closed_once_and_then_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    source = FileSource(path)
    assert (source.name, source.size, source.read(3, 4)) == (str(path), 10, b"3456")
    descriptor = source._descriptor
    assert descriptor is not None
    source.close()
    source.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    with pytest.raises(AlcidError, match=f"^{path}: the file is closed$"):
        source.read(0, 1)


class Few(io.BytesIO):
    """A file that returns two bytes at a time, as a network does."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 2))


def test_a_file_object_is_read_as_often_as_it_takes() -> None:
    source = FileObjectSource(Few(b"0123456789"))
    assert (source.name, source.size) == ("<Few>", 10)
    assert source.read(1, 5) == b"12345"
    assert source.read(4, 0) == b""
    with pytest.raises(FormatError) as raised:
        source.read(7, 5)
    assert str(raised.value) == "<Few>: short read at offset 7: found 3, expected 5"


def test_file_objects_that_give_no_bytes_or_cannot_seek_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"^<StringIO>: opened as text, expected a binary f"):
        FileObjectSource(io.StringIO("x"))  # type: ignore[arg-type]
    reading, writing = os.pipe()
    refused = pytest.raises(
        UnsupportedError, match=r": a file that cannot seek is not read by rang"
    )
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb"), refused:
        FileObjectSource(file)
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    with path.open("rb") as file:
        assert FileObjectSource(file).name == str(path)


@pytest.mark.parametrize(
    ("file", "description"),
    [(7, "int"), (b"PFA1", "bytes: io.BytesIO makes a file of bytes")],
)
def test_objects_that_are_not_files_are_refused(file: Any, description: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        open_with(file, lambda opened: opened.size)
    assert str(raised.value) == f"expected a path, a binary file or a Source, found {description}"


def test_a_file_that_was_opened_here_is_closed_if_it_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    opened: list[Source] = []

    def fail(source: Source) -> None:
        opened.append(source)
        raise FormatError("damaged", file=source.name)

    with pytest.raises(FormatError, match="damaged"):
        open_with(path, fail)
    with pytest.raises(AlcidError, match="the file is closed"):
        opened[0].read(0, 1)

    size, file = open_with(str(path), lambda opened: opened.size)
    assert size == 3
    assert file is not None
    file.close()
    source = BytesSource(b"ab")
    assert open_with(source, lambda opened: opened) == (source, None)
    assert open_with(io.BytesIO(b"ab"), lambda opened: opened.read(1, 1)) == (b"b", None)


@pytest.mark.parametrize(
    ("start", "length", "most"), [(-1, 1, 11), (0, 11, 10), (3, -1, 7), (11, 0, 0), (8, 3, 2)]
)
def test_a_section_is_within_its_source(start: int, length: int, most: int) -> None:
    source = BytesSource(b"0123456789", "x")
    with pytest.raises(FormatError) as raised:
        Section(source, start, length)
    assert str(raised.value) == (
        f"x: section outside of the file at offset {start}: "
        f"found {length} bytes, expected at most {most}"
    )


@pytest.mark.parametrize(
    ("offset", "length", "left"), [(-1, 1, 6), (0, 6, 5), (3, -1, 2), (6, 0, 0), (4, 2, 1)]
)
def test_a_part_is_within_its_section(offset: int, length: int, left: int) -> None:
    section = Section(BytesSource(b"0123456789", "x"), 2, 5)
    with pytest.raises(FormatError) as raised:
        section.section(offset, length)
    assert str(raised.value) == (
        f"x: part outside of its section at offset {2 + offset}: "
        f"found {length} bytes, expected at most {left}"
    )
    with pytest.raises(FormatError) as raised:
        section.read(offset, length)
    assert str(raised.value) == (
        f"x: truncated at offset {2 + offset}: found {left} bytes, expected {length}"
    )


def test_sections_of_sections() -> None:
    section = Section(BytesSource(b"0123456789"), 2, 5)
    assert section.read(0, 5) == b"23456"
    assert section.read(5, 0) == b""
    rest = section.section(3)
    assert (rest.start, rest.length, rest.read(0, 2)) == (5, 2, b"56")
    assert Section(BytesSource(b"0123456789"), 10).length == 0
