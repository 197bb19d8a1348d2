"""Files whose footer states another number of rows than their row groups have."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid.datafiles.parquet import open_scan, read_layout, read_rows
from alcid.datafiles.parquet.columns import file_columns
from alcid.errors import AlcidWarning
from alcid.formats.source import BytesSource
from alcid.index.build import footer_statistics
from alcid.index.bundle import ColumnStatistics
from tests.datafiles.parquet.footers import I64, edit_footer
from tests.datafiles.parquet.kit import written

ROWS = pa.table({"id": range(6), "name": list("abcdef")})
NOTE = r"{}: the footer says {} rows, its row groups have 6"


def stating(rows: int, **options: object) -> bytes:
    """A file of six rows in two row groups whose footer states another number of rows."""
    data = written(ROWS, row_group_size=4, **options)
    return edit_footer(data, lambda footer: footer.set(3, I64, rows))


@pytest.mark.parametrize("stated", [0, 5, 7, -1])
@pytest.mark.parametrize("paged", [False, True])
def test_rows_are_those_of_the_row_groups(stated: int, paged: bool) -> None:
    source = BytesSource(stating(stated, write_page_index=paged))
    scan = open_scan(source)
    assert scan.metadata.num_rows == stated
    assert scan.group_rows == (4, 2)
    assert scan.read().to_pydict() == ROWS.to_pydict()
    assert read_layout(source).rows == 6
    assert read_rows(source, [3, 4]).to_pydict() == ROWS.slice(3, 2).to_pydict()


@pytest.mark.parametrize("stated", [0, 5, 7])
def test_no_file_is_left_out_by_a_footer_that_contradicts_itself(
    tmp_path: Path, stated: int
) -> None:
    (tmp_path / "a.parquet").write_bytes(stating(stated))
    table = alcid.parquet(tmp_path)
    with pytest.warns(AlcidWarning, match=NOTE.format("a.parquet", stated)):
        scan = table.scan("id >= 4")
    assert scan.to_arrow().to_pydict() == ROWS.slice(4).to_pydict()
    assert "its row groups have 6" in str(scan.explain())
    assert (table.count(), table.count("name = 'z'")) == (6, 0)
    # Statistics of such a footer are not used: both row groups are read.
    scan = table.scan("id >= 4")
    groups = next(stage for stage in scan.explain().stages if stage.name == "row groups")
    assert (groups.before.row_groups, groups.after.row_groups) == (2, 2)


def test_a_build_counts_the_rows_of_the_row_groups_and_copies_no_statistics(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(stating(0))
    table = alcid.parquet(tmp_path)
    table.build_indexes({"file-index.bitmap.columns": "name"})
    again = alcid.parquet(tmp_path)
    assert again.scan("name = 'f'").to_arrow().to_pydict() == {"id": [5], "name": ["f"]}
    assert again.scan("id = 5").to_arrow().to_pydict() == {"id": [5], "name": ["f"]}
    assert again.count() == 6
    assert again.verify().problems == ()


def test_statistics_of_a_footer_that_contradicts_itself_are_not_known() -> None:
    for stated, bounds in (6, (0, 5, 0)), (0, (None, None, None)):
        scan = open_scan(BytesSource(stating(stated)))
        statistics = footer_statistics(file_columns(scan.metadata, "a.parquet")[0], scan.statistics)
        assert isinstance(statistics, ColumnStatistics)
        assert (statistics.minimum, statistics.maximum, statistics.nulls) == bounds


def test_many_such_files_are_one_note(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.parquet").write_bytes(stating(number))
    (tmp_path / "sound.parquet").write_bytes(stating(6))
    table = alcid.parquet(tmp_path)
    assert len(table.snapshot.notes) == 1
    with pytest.warns(AlcidWarning, match=NOTE.format("0.parquet", 0) + r".*4 other files"):
        assert table.count() == 36
