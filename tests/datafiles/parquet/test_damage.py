"""A damaged file is refused, or gives rows; nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.datafiles.parquet import FileLayout, read_layout, read_rows
from alcid.errors import AlcidError, FormatError, UnsupportedError
from alcid.formats.source import BytesSource
from alcid.testing import flips, truncations
from tests.datafiles.parquet.kit import PAGED, counted, encrypted, written

TABLE = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "word": pa.array(["a", None, "ccc", "dd"] * 10),
        "list": [[1, 2], [], None, [3]] * 10,
    }
)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none", "data_page_version": "1.0"},
        {"compression": "snappy", "data_page_version": "2.0"},
    ],
    ids=["plain", "compressed"],
)
def test_every_byte_flipped_gives_rows_or_an_error_of_ours(options: dict[str, Any]) -> None:
    data = written(TABLE.slice(0, 20), **PAGED, **options, store_schema=False)
    problems: list[str] = []
    for damage in flips(data):
        try:
            table = read_rows(BytesSource(damage.data, "damaged"), [0, 11, 19])
        except AlcidError as error:
            problems.append(str(error))
        else:
            assert table.num_rows == 3, damage.what
    assert len(problems) > len(data) // 2
    assert [problem for problem in problems if not problem.startswith("damaged: ")] == []


def test_checksums_show_every_flip_in_a_page() -> None:
    table = TABLE.drop_columns("list")
    data = written(table, **PAGED, compression="none", write_page_checksum=True)
    layout = read_layout(counted(data))
    expected = table.take([0, 11, 39])
    changed = 0
    for damage in flips(data[: layout.end]):
        try:
            rows = read_rows(BytesSource(damage.data, damage.what), [0, 11, 39], layout=layout)
        except FormatError:
            changed += 1
        else:
            assert rows == expected, damage.what
    assert changed > 500


def test_every_truncation_is_refused() -> None:
    data = written(TABLE, **PAGED, compression="none", store_schema=False)
    for damage in truncations(data):
        with pytest.raises(FormatError):
            read_rows(BytesSource(damage.data, damage.what), [0])


@pytest.mark.parametrize("seed", range(4))
def test_random_footers_are_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(150):
        footer = random.integers(0, 256, int(random.integers(0, 200)), np.uint8).tobytes()
        data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
        with pytest.raises(AlcidError, match=r"^random"):
            read_layout(BytesSource(data, "random"))


def test_arrow_schema_must_be_one() -> None:
    data = written(TABLE, **PAGED)
    key = data.index(b"ARROW:schema") + len(b"ARROW:schema") + 3
    for damaged in (data[:key] + b"!" + data[key + 1 :], data[:key] + b"AAAA" + data[key + 4 :]):
        with pytest.raises(FormatError, match=r"^a.parquet: damaged ARROW:schema"):
            read_layout(counted(damaged))


def test_an_encrypted_footer_is_refused() -> None:
    data = written(TABLE, **PAGED)
    with pytest.raises(UnsupportedError, match=r"a.parquet: its footer is encrypted"):
        read_layout(counted(data[:-4] + b"PARE"))


@pytest.mark.parametrize("size", [0, 1, 11])
def test_a_file_too_short_is_refused(size: int) -> None:
    with pytest.raises(FormatError, match=f"no Parquet file: found {size} bytes"):
        read_layout(counted(b"PAR1"[:size] + bytes(max(0, size - 4))))


@pytest.mark.parametrize(
    ("array", "position", "value", "problem"),
    [
        ("groups", (0, 0), -1, "an unknown codec"),
        ("groups", (0, 1), 64, "an unknown codec"),
        ("groups", (1, 0), 19, "a number of values that is not that of its rows"),
        ("groups", (2, 0), 3, "pages that overlap"),
        ("groups", (2, 1), 1 << 40, "pages that overlap"),
        ("pieces", (2, 0), 1, "a row group without a first page"),
        ("pieces", (2, 0), -1, "first rows that do not ascend"),
        ("pieces", (2, 1), 0, "first rows that do not ascend"),
        ("pieces", (2, 2), 21, "a row group without a first page"),
        ("pieces", (2, 3), 40, "first rows that do not ascend"),
        ("pieces", (1, 1), 0, "a page of no size"),
        ("pieces", (1, 0), 1 << 62, "a page of no size"),
        ("pieces", (0, 1), 1 << 62, "a page of no size"),
        ("pieces", (1, 0), 1 << 30, "pages that overlap"),
        ("pieces", (0, 1), 4, "pages that overlap"),
    ],
)
def test_a_layout_whose_arrays_contradict_each_other_is_refused(
    array: str, position: tuple[int, int], value: int, problem: str
) -> None:
    data = written(TABLE.select(["id"]), **PAGED, row_group_size=20)
    layout = read_layout(counted(data))
    getattr(layout.columns[0].leaves[0], array)[position] = value
    with pytest.raises(FormatError) as raised:
        FileLayout(layout.starts, layout.columns, "kept")
    assert str(raised.value) == f"kept: bad layout of column id: found {problem}"


def test_row_groups_of_a_layout_must_ascend() -> None:
    for starts in ([], [1, 2], [0, 2, 2], [0, 3, 2]):
        with pytest.raises(FormatError, match="kept: row groups that do not ascend"):
            FileLayout(np.array(starts, np.int64), (), "kept")


def test_a_page_that_holds_other_rows_than_the_layout_says_is_refused() -> None:
    data = written(TABLE.select(["id"]), **PAGED, compression="none")
    layout = read_layout(counted(data))
    layout.columns[0].leaves[0].pieces[2, 1] = 11
    offset = int(layout.columns[0].leaves[0].pieces[0, 0])
    with pytest.raises(FormatError) as raised:
        read_rows(counted(data), [3], layout=layout)
    assert str(raised.value) == (
        f"a.parquet: bad page header at offset {offset}: found 10 values, expected 11 values"
    )


def test_encrypted_columns_are_refused_and_the_others_read() -> None:
    table = TABLE.select(["id", "word"])
    source = counted(encrypted(table, column_keys={"key": ["word"]}, write_page_index=True))
    layout = read_layout(source)
    assert layout.column("word").whole == "encrypted"
    assert layout.column("word").leaves == ()
    with pytest.raises(UnsupportedError, match=r"a.parquet: column word: encrypted"):
        read_rows(source, [3])
    assert read_rows(source, [3], ["id"]).to_pydict() == {"id": [3]}
