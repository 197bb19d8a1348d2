"""The cache of opened indexes: each is opened once, and the oldest ones are dropped."""

from __future__ import annotations

import pytest

from alcid.errors import FormatError
from alcid.formats.file_index.reader import EmptyReader
from alcid.formats.source import BytesSource
from alcid.index import opened
from alcid.index.bundle import CheckedSource
from alcid.index.bundle.directory import seal
from alcid.index.opened import OpenedIndexes


def sized(size: int) -> CheckedSource:
    """A payload that was read completely."""
    blocks = b"".join(seal(bytes(size)))
    source = CheckedSource(BytesSource(blocks), 0, size, bytes(4), "payload")
    source.read(0, size)
    return source


def test_an_index_is_opened_once() -> None:
    cache, reader = OpenedIndexes(), EmptyReader()
    assert cache.get(("id", "bitmap", 1), lambda: (reader, None)) is reader
    assert cache.get(("id", "bitmap", 1), lambda: pytest.fail("opened again")) is reader
    assert cache.get(("id", "bitmap", 2), lambda: (EmptyReader(), None)) is not reader


def test_an_index_that_cannot_be_opened_is_tried_again() -> None:
    cache = OpenedIndexes()

    def damaged() -> tuple[EmptyReader, None]:
        raise FormatError("damaged", file="x")

    for _ in range(2):
        with pytest.raises(FormatError):
            cache.get(("id", "bitmap", 1), damaged)
    assert len(cache) == 0


def test_the_least_recently_used_go_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "_MOST_OPENED", 3)
    cache, first = OpenedIndexes(), EmptyReader()
    for file in range(10):
        cache.get(("id", "bitmap", file), lambda: (EmptyReader(), None))
        cache.get(("id", "bitmap", -1), lambda: (first, None))
        assert len(cache) <= 3
    assert cache.get(("id", "bitmap", -1), lambda: pytest.fail("dropped though used")) is first


def test_the_oldest_go_where_they_have_read_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "_MOST_BYTES", 5000)
    monkeypatch.setattr(opened, "_CHECK_EVERY", 4)
    cache = OpenedIndexes()
    for file in range(4):
        cache.get(("id", "bitmap", file), lambda: (EmptyReader(), sized(2000)))
        cache.get(("id", "bsi", file), lambda: (EmptyReader(), None))
    assert len(cache) <= 5
    kept = EmptyReader()
    assert cache.get(("id", "bitmap", 0), lambda: (kept, None)) is kept
    assert cache.get(("id", "bitmap", 3), lambda: pytest.fail("the newest")) is not kept
