"""Column chunks of long footers, parsed when needed: equal to those that are parsed at once."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alcid.datafiles.parquet import footer as footers
from alcid.datafiles.parquet import open_scan, read_layout, read_rows
from alcid.datafiles.parquet.footer import END, Chunk, footer_length, parse_footer
from alcid.errors import AlcidError, FormatError, UnsupportedError
from alcid.formats.source import BytesSource
from tests.datafiles.parquet.footers import BINARY, STRUCT, Node, edit_footer
from tests.datafiles.parquet.kit import encrypted, table_of, written

_ROWS = pa.table(
    {
        "number": range(100),
        "long text": [f"{row:03}" + "x" * 100 for row in range(100)],
        "short text": [f"{row}" for row in range(100)],
        "nothing": pa.nulls(100, pa.int32()),
        "nested": [[{"a": row, "b": {"c": {"d": "e"}}}] for row in range(100)],
        "number with a NaN": [float("nan"), *range(99)],
    }
)
_WRITTEN = {
    "page index": written(_ROWS, row_group_size=40, write_page_index=True),
    "no page index": written(_ROWS, row_group_size=40),
    "no statistics": written(_ROWS, row_group_size=40, write_statistics=False),
    "no dictionary": written(_ROWS, row_group_size=40, use_dictionary=False),
    "all types": written(table_of("nulls at page borders", nested=True), row_group_size=400),
    "old": written(_ROWS, row_group_size=40, version="1.0"),
}


def chunks(data: bytes, long: int) -> list[list[Chunk | None]]:
    """Every chunk of a file; footers of `long` bytes and more are parsed when needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footers, "_LONG", long)
        return [list(group.chunks) for group in parse_footer(BytesSource(data), data).groups]


def outcome(data: bytes, long: int) -> object:
    try:
        return chunks(data, long)
    except AlcidError as error:
        return type(error)


@pytest.mark.parametrize("name", _WRITTEN)
def test_chunks_parsed_as_needed_are_the_same(name: str) -> None:
    data = _WRITTEN[name]
    expected = chunks(data, 1 << 60)
    assert len(expected) > 1
    assert chunks(data, 0) == expected


@settings(deadline=None)
@given(st.sampled_from(sorted(_WRITTEN)), st.data())
def test_damage_is_noticed_in_the_same_chunks(name: str, data: st.DataObject) -> None:
    file = bytearray(_WRITTEN[name])
    length = footer_length(bytes(file))
    for _ in range(data.draw(st.integers(1, 3))):
        position = len(file) - END - 1 - data.draw(st.integers(0, length - 1))
        file[position] = data.draw(st.integers(0, 255))
    as_needed, at_once = outcome(bytes(file), 0), outcome(bytes(file), 1 << 60)
    if as_needed != at_once:  # the chunks of a row group without rows are always parsed at once
        assert at_once is FormatError
        assert isinstance(as_needed, list)
        assert len(as_needed) < len(chunks(_WRITTEN[name], 0))


def test_encryption_is_known_of_a_chunk_that_is_not_looked_at() -> None:
    # Arrow 19 does not read columns behind an encrypted one.
    rows = pa.table({"open": range(10), "secret": range(10)})
    data = encrypted(rows, column_keys={"key": ["secret"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footers, "_LONG", 0)
        assert read_rows(BytesSource(data), None, ["open"]).equals(rows.select(["open"]))
        with pytest.raises(UnsupportedError, match="encrypted"):
            read_rows(BytesSource(data), None, ["secret"])
        assert read_layout(BytesSource(data)).column("secret").whole == "encrypted"


@pytest.mark.parametrize("edit", ["crypto", "path"])
def test_a_marked_chunk_is_never_an_ordinary_one(edit: str) -> None:
    def mark(footer: Node) -> None:
        chunk = footer.structs(4)[1].structs(1)[2]
        if edit == "crypto":
            chunk.set(8, STRUCT, Node())
        else:
            chunk.set(1, BINARY, b"other.parquet")
            chunk.fields = dict(sorted(chunk.fields.items()))

    data = edit_footer(_WRITTEN["page index"], mark)
    assert outcome(data, 0) == outcome(data, 1 << 60)
    if edit == "path":
        assert outcome(data, 0) is UnsupportedError


def test_only_the_damage_of_requested_columns_counts() -> None:
    data = _WRITTEN["page index"].replace(b"number\x15\x02", b"number\x15\x7f")  # the codec
    assert data != _WRITTEN["page index"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footers, "_LONG", 0)
        layout = read_layout(BytesSource(data), ["short text"])
        rows = read_rows(BytesSource(data), [5, 90], ["short text"], layout=layout)
        assert rows["short text"].to_pylist() == ["5", "90"]
        with pytest.raises(FormatError, match="unknown codec"):
            read_layout(BytesSource(data), ["number"])
        with pytest.raises(FormatError, match="unknown codec"):
            open_scan(BytesSource(data)).read([0], ["number"])


def test_a_wide_file_is_read_by_a_few_of_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"column {number}" for number in range(300)]
    rows = pa.table({name: np.arange(60) + number for number, name in enumerate(names)})
    data = written(rows, row_group_size=10, write_page_index=True)
    assert footer_length(data) > footers._LONG
    check = Mock(wraps=footers._chunk)
    monkeypatch.setattr(footers, "_chunk", check)
    table = read_rows(BytesSource(data), [7, 41], ["column 250"])
    assert table.to_pydict() == {"column 250": [257, 291]}
    assert check.call_count == 6  # one for each row group
