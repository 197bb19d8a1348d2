"""A compaction takes level 0, and as many runs as are needed to make room for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from alcid.formats.deletion_vector import DeletionVectorRange
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.bucket_compaction import count_levels, pick_all, pick_runs
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, IndexEntry

LEVELS = 6


def file_of(name: str, level: int, size: int, *, delete_rows: int | None = 0) -> PlacedFile:
    """A file of which only level and size matter."""
    file = DataFile(
        name=name,
        size=size,
        rows=1,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=NO_STATS,
        value_stats=NO_STATS,
        min_sequence=0,
        max_sequence=0,
        schema_id=0,
        level=level,
        delete_rows=delete_rows,
    )
    return PlacedFile(ManifestEntry(ADD, EMPTY, 0, 1, file), "bucket-0/")


def bucket_of(sizes: Mapping[int, Sequence[int]], vectors: Sequence[str] | None = None) -> Bucket:
    """Files by level, named `<level>-<number>`, and an index file of vectors for some."""
    files = [
        file_of(f"{level}-{number}", level, size)
        for level, some in sizes.items()
        for number, size in enumerate(some)
    ]
    ranges = tuple(DeletionVectorRange(name, 1, 22, 1) for name in vectors or ())
    entry = IndexEntry(EMPTY, 0, DELETION_VECTORS, "index-0", 9, len(ranges), ranges)
    return Bucket(EMPTY, 0, "bucket-0/", tuple(files), () if vectors is None else (entry,))


@pytest.mark.parametrize(
    ("sizes", "taken", "level"),
    [
        pytest.param({0: [1]}, [0], 5, id="empty: the top level"),
        pytest.param({0: [1, 1], 5: [9]}, [0], 4, id="below the top"),
        pytest.param({0: [1], 3: [9], 5: [9]}, [0], 2, id="below the lowest"),
        pytest.param({0: [99], 2: [1], 5: [1]}, [0], 1, id="the last free level, small runs above"),
        pytest.param({0: [1], 1: [1]}, [0, 1], 5, id="no free level, one run: the top level"),
        pytest.param({0: [1], 1: [9], 5: [11]}, [0, 1], 4, id="up to below the next run"),
        pytest.param({0: [1], 1: [9], 5: [10]}, [0, 1, 5], 5, id="a run that is not larger"),
        pytest.param({0: [1], 1: [1], 2: [99], 3: [200]}, [0, 1, 2], 2, id="two runs at least"),
        pytest.param(
            {0: [1], 1: [1], 2: [1], 3: [3], 4: [6], 5: [13]}, [0, 1, 2, 3, 4], 4, id="by sizes"
        ),
        pytest.param(
            {0: [1], 1: [1], 2: [2], 3: [2, 2], 4: [8], 5: [16]},
            [0, 1, 2, 3, 4, 5],
            5,
            id="the sizes of all files of a run count, and equal is not larger",
        ),
        pytest.param({0: [1], 8: [1]}, [0], 7, id="more levels than the table has"),
        pytest.param({0: [1], 1: [1], 8: [1]}, [0, 1, 8], 8, id="the top is the highest there is"),
    ],
)
def test_level_zero_goes_below_the_runs_that_are_not_taken(
    sizes: dict[int, list[int]], taken: list[int], level: int
) -> None:
    unit = pick_runs(bucket_of(sizes), LEVELS)
    assert unit is not None
    assert [file.file.name for file in unit.files] == [
        f"{run_level}-{number}" for run_level in taken for number in range(len(sizes[run_level]))
    ]
    assert unit.output_level == level


def test_without_level_zero_nothing_is_taken() -> None:
    assert pick_runs(bucket_of({1: [1], 5: [1]}, ["5-0"]), LEVELS) is None
    assert pick_runs(bucket_of({}), LEVELS) is None


def test_everything_goes_to_the_top_level() -> None:
    for sizes, top in (({0: [1]}, 5), ({4: [1]}, 5), ({3: [1], 5: [1]}, 5), ({0: [1], 7: [1]}, 7)):
        bucket = bucket_of(sizes)
        unit = pick_all(bucket, LEVELS)
        assert unit is not None
        assert unit.files == bucket.files
        assert unit.output_level == top


def test_what_is_on_the_top_level_is_taken_only_for_its_deleted_rows() -> None:
    assert pick_all(bucket_of({}), LEVELS) is None
    assert pick_all(bucket_of({5: [1, 1]}), LEVELS) is None
    assert pick_all(bucket_of({5: [1, 1]}, []), LEVELS) is None
    assert pick_all(bucket_of({5: [1, 1]}, ["5-1"]), LEVELS) is not None
    for deleted_count in (1, None):  # an unknown count makes readers merge
        files = (file_of("a", 5, 1, delete_rows=deleted_count),)
        assert pick_all(Bucket(EMPTY, 0, "bucket-0/", files), LEVELS) is not None


def test_there_is_always_a_level_above_zero() -> None:
    assert count_levels(bucket_of({}), 1) == 2
    unit = pick_runs(bucket_of({0: [1]}), 1)
    assert unit is not None
    assert unit.output_level == 1
