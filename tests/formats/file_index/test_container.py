from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError, LimitError
from alcid.formats.cursor import Writer
from alcid.formats.file_index.container import (
    MAGIC,
    Container,
    Entry,
    write_container,
)
from alcid.formats.source import BytesSource


def opened(data: bytes) -> Container:
    return Container.open(BytesSource(data, "x.index"))


def head(body: Writer, redundant: bytes = b"") -> bytes:
    """A container whose head has the content of `body` after the column count."""
    length = 16 + body.length + 4 + len(redundant)
    writer = Writer().i64(MAGIC).i32(1, length).raw(body.to_bytes())
    return writer.i32(len(redundant)).raw(redundant).to_bytes()


def test_columns_and_types_are_sorted_and_contiguous() -> None:
    data = write_container({("b", "bsi"): b"123", ("b", "bitmap"): b"45", ("a", "bsi"): b"6"})
    container = opened(data)
    at = container.head_length
    assert container.entries == (
        Entry("a", "bsi", at, 1),
        Entry("b", "bitmap", at + 1, 2),
        Entry("b", "bsi", at + 3, 3),
    )
    assert data[at:] == b"645123"


def test_nothing_written_is_an_empty_entry() -> None:
    (entry,) = opened(write_container({("m[a]", "bitmap"): None})).entries
    assert entry == Entry("m[a]", "bitmap", -1, 0)
    assert entry.is_empty


def test_a_payload_without_bytes_is_not_an_empty_entry() -> None:
    (entry,) = opened(write_container({("a", "future"): b""})).entries
    assert not entry.is_empty


def test_redundant_bytes_of_a_later_version_are_stepped_over() -> None:
    body = Writer().i32(1).utf("a").i32(1).utf("bsi")
    length = 16 + body.length + 8 + 4 + 5
    data = head(body.i32(length, 1), redundant=b"later") + b"!"
    container = opened(data)
    assert container.entries == (Entry("a", "bsi", length, 1),)
    assert container.redundant == 5
    assert container.section(container.entries[0]).read(0, 1) == b"!"


def test_a_column_given_twice_is_merged_and_of_a_type_given_twice_the_last_counts() -> None:
    body = Writer().i32(2)
    for start in (64, 65):
        body.utf("a").i32(1).utf("bsi").i32(start, 1)
    data = head(body) + b"12"
    assert len(data) == 66
    assert opened(data).entries == (Entry("a", "bsi", 65, 1),)


def test_indexes_may_be_stored_in_another_order_than_in_the_head() -> None:
    body = Writer().i32(2)
    for column, start in (("a", 66), ("b", 64)):
        body.utf(column).i32(1).utf("bsi").i32(start, 2)
    container = opened(head(body) + b"bbaa")
    assert [container.section(entry).read(0, 2) for entry in container.entries] == [b"aa", b"bb"]


@given(
    st.dictionaries(
        st.tuples(st.text(max_size=20), st.sampled_from(["bitmap", "bsi", "später"])),
        st.none() | st.binary(max_size=9),
        max_size=8,
    )
)
def test_any_names_come_back(payloads: dict[tuple[str, str], bytes | None]) -> None:
    container = opened(write_container(payloads))
    sections = {
        (entry.column, entry.index_type): None
        if entry.is_empty
        else container.section(entry).read(0, entry.length)
        for entry in container.entries
    }
    assert sections == payloads


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.index: truncated at offset 0: found 0 bytes, expected 8"),
        (bytes(16), f"x.index: not a file index: bad magic at offset 0: found 0, expected {MAGIC}"),
        (
            Writer().i64(MAGIC).i32(2, 24, 0, 0).to_bytes(),
            "x.index: unknown container version at offset 8: found 2, expected 1",
        ),
        (
            Writer().i64(MAGIC).i32(1, 25, 0, 0).to_bytes(),
            "x.index: bad head length at offset 12: found 25, expected 0 to 24",
        ),
        (
            Writer().i64(MAGIC).i32(1, 24, 9, 0).to_bytes(),
            "x.index: bad column count at offset 16: found 9, expected 0 to 4",
        ),
        (
            head(Writer().i32(1).utf("a").i32(1).utf("bsi").i32(45, 1)),
            "x.index: index bsi of 'a' out of place at offset 32: found 1 bytes from 45",
        ),
        (
            head(Writer().i32(1).utf("a").i32(1).utf("bsi").i32(-1, 3)),
            "x.index: index bsi of 'a' out of place at offset 32: found 3 bytes from -1",
        ),
        (
            head(Writer().i32(1).utf("a").i32(1).utf("bsi").i32(44, 3)) + b"12",
            "x.index: indexes do not fill the file at offset 47: found 46, expected 47",
        ),
        (
            head(Writer().i32(1).utf("a").i32(1).utf("bsi").i32(44, 1)) + b"12",
            "x.index: indexes do not fill the file at offset 45: found 46, expected 45",
        ),
    ],
    ids=[
        "empty",
        "magic",
        "version",
        "head length",
        "columns",
        "gap",
        "empty entry",
        "short",
        "long",
    ],
)
def test_a_broken_head_says_where_and_what(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        opened(data)
    assert str(error.value).startswith(message)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_beyond_two_gibibytes_is_refused_before_anything_is_joined() -> None:
    half = bytes(1 << 30)  # the same object twice: no extra memory
    with pytest.raises(LimitError, match="at most 2147483647 bytes: bsi of 'b' does not fit"):
        write_container({("a", "bsi"): half, ("b", "bsi"): half})
