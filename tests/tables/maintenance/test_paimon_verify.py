"""Verify on Paimon tables: golden tables are sound, and each kind of damage is found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid import DeletionVector, DeletionVectorFile, OptionError
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.container import Container, write_container
from alcid.formats.file_index.keys import read_column
from alcid.formats.source import BytesSource
from alcid.storage import Storage
from alcid.tables.engine import Engine, Threads
from alcid.tables.maintenance.paimon_checks import CheckedTable
from alcid.tables.maintenance.paimon_verify import verify
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.paimon.metadata.manifest import (
    ManifestEntry,
    read_manifest_list,
    write_manifest_list,
)
from alcid.tables.paimon.metadata.statistics import FULL, collect, pack_rows
from alcid.tables.paimon.metadata.table_state import IndexEntry
from alcid.types import DataType
from tests.golden.paimon_tables import table_names, unpack_table
from tests.tables.maintenance.forging import (
    flip,
    forge,
    one_file,
    snapshot_of,
    state_of,
    with_file,
)
from tests.tables.maintenance.kit import Workers, checks

READ = [name for name in table_names() if name != "avro"]


def verified(table: Path, engine: Engine | None = None, **options: Any) -> VerifyReport:
    return verify(Storage.open(table), engine or Threads(), **options)


def problem_lines(report: VerifyReport) -> list[tuple[str, str, str]]:
    """All problems: file, part, and what is wrong."""
    assert len(report.problems) == report.problem_count
    return [(problem.file, problem.what, problem.problem) for problem in report.problems]


def placed(table: Path, entry: ManifestEntry) -> str:
    """The path of a data file."""
    return next(path for path in table.rglob(entry.file.name)).relative_to(table).as_posix()


def first_entry(table: Path) -> ManifestEntry:
    return min(state_of(table).entries, key=lambda entry: entry.file.name)


def only(table: Path, **change: Any) -> str:
    """Change the description of a file; returns its path."""
    first = first_entry(table)
    forge(
        table,
        lambda entry: with_file(**change)(entry) if entry.file.name == first.file.name else [entry],
    )
    return placed(table, first)


@pytest.mark.parametrize("name", READ)
def test_golden_tables_are_sound(tmp_path: Path, name: str) -> None:
    table = unpack_table(name, tmp_path)
    entries = state_of(table).entries
    for engine in (Threads(), Workers(3)):
        report = verified(table, engine)
        assert (problem_lines(report), report.warnings, report.leftovers) == ([], (), ())
        assert (report.files, report.checked) == (len(entries), len(entries))
        assert report.rows == sum(entry.file.rows for entry in entries)
        assert report.unindexed == sum(not entry.file.has_index for entry in entries)
        assert all(index.sound == index.checked > 0 for index in report.indexes)


def test_every_index_is_built_again_and_called_by_the_name_of_now(tmp_path: Path) -> None:
    sound = {name: check.sound for name, check in checks(_golden(tmp_path, "evolution")).items()}
    assert sound == {
        "statistics of 'added'": 3,
        "statistics of 'id'": 4,
        "bsi of 'id'": 4,
        "statistics of 'old'": 4,
        "statistics of 'size'": 4,
        "range-bitmap of 'size'": 4,
        "statistics of 'text'": 4,
        "bitmap of 'text'": 3,
    }


def _golden(folder: Path, name: str) -> VerifyReport:
    return verified(unpack_table(name, folder))


# -- manifests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["base_manifest_list", "delta_manifest_list", "index_manifest"])
def test_a_damaged_file_of_a_snapshot_is_named(tmp_path: Path, kind: str) -> None:
    table = unpack_table("vectors_32", tmp_path)
    name = getattr(snapshot_of(table), kind)
    flip(table / "manifest" / name, -1)  # the mark behind the last block
    report = verified(table)
    ((file, what, problem),) = problem_lines(report)
    assert (file, what) == (f"manifest/{name}", "")
    assert problem.startswith(f"manifest/{name}: damaged Avro file: ")
    assert (report.files, report.checked, report.leftovers) == (0, 0, ())


def test_damaged_cut_and_missing_manifests_are_all_named(tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    names = [meta.name for meta in state_of(table).manifests]
    first, second, third = (table / "manifest" / name for name in names[:3])
    flip(first, -20)
    second.write_bytes(second.read_bytes()[:-1])
    third.unlink()
    size = second.stat().st_size
    problems = {file: (what, problem) for file, what, problem in problem_lines(verified(table))}
    assert problems.pop(f"manifest/{first.name}")[1].startswith(f"manifest/{first.name}: damaged")
    assert problems == {
        f"manifest/{second.name}": ("size", f"found {size} bytes, expected {size + 1}"),
        f"manifest/{third.name}": ("", "is not there"),
    }


def test_a_damaged_snapshot_is_reported(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    path = one_file(table, "snapshot/snapshot-2")
    path.write_bytes(path.read_bytes()[:-1])
    ((file, what, _),) = problem_lines(verified(table))
    assert (file, what) == (str(path), "snapshot")


def test_a_list_with_a_wrong_count_is_reported(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    meta = state_of(table).manifests[0]
    snapshot = snapshot_of(table)
    path = table / "manifest" / snapshot.base_manifest_list
    metas = read_manifest_list(path.read_bytes(), file="list")
    assert metas[0].name == meta.name
    data = write_manifest_list([replace(metas[0], added=7), *metas[1:]], "zstd")
    path.write_bytes(data)
    new = replace(snapshot, base_manifest_list_size=len(data))
    (table / f"snapshot/snapshot-{new.id}").write_bytes(new.to_json())
    assert problem_lines(verified(table)) == [
        (
            f"manifest/{meta.name}",
            "counts in its list",
            "found 7 added and 0 deleted, expected 1 and 0",
        )
    ]


def test_a_damaged_manifest_of_a_tag_is_reported_and_nothing_is_a_leftover(tmp_path: Path) -> None:
    table = unpack_table("history", tmp_path)
    tag = json.loads((table / "tag/tag-second").read_bytes())
    flip(table / "manifest" / tag["deltaManifestList"], -1)
    report = verified(table)
    ((file, what, problem),) = problem_lines(report)
    assert (file, what) == ("", "older snapshots")
    assert problem.startswith(f"manifest/{tag['deltaManifestList']}: damaged Avro file: ")
    assert (report.checked, report.leftovers) == (3, ())


def test_a_missing_schema_is_reported_and_its_files_are_left_out(tmp_path: Path) -> None:
    table = unpack_table("evolution", tmp_path)
    (table / "schema/schema-0").unlink()
    report = verified(table)
    assert [(file, what) for file, what, _ in problem_lines(report)] == [
        ("schema/schema-0", "schema")
    ]
    assert (report.files, report.checked) == (4, 3)


# -- data files ----------------------------------------------------------------------------------


def test_a_missing_data_file_is_found(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    path = placed(table, first_entry(table))
    (table / path).unlink()
    assert problem_lines(verified(table)) == [(path, "", "is not there")]
    assert problem_lines(verified(table, sample=0.01, seed=1)) == [(path, "", "is not there")]
    assert problem_lines(verified(table, sample=0.01, seed=2)) == [(path, "", "is not there")]


def test_a_data_file_of_another_size_is_found(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    entry = first_entry(table)
    path = placed(table, entry)
    (table / path).write_bytes((table / path).read_bytes() + b"\0")
    size = entry.file.size
    assert problem_lines(verified(table)) == [
        (path, "size", f"found {size + 1} bytes, expected {size}")
    ]


def test_a_damaged_footer_is_found(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    path = placed(table, first_entry(table))
    flip(table / path, -1)
    ((file, what, problem),) = problem_lines(verified(table))
    assert (file, what) == (path, "")
    assert problem.startswith(f"{table / path}: no Parquet file")


def test_a_damaged_column_is_found_and_the_others_are_compared(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    path = placed(table, first_entry(table))
    flip(table / path, 4)  # the first page of the first column
    report = verified(table)
    ((file, what, _),) = problem_lines(report)
    assert (file, what) == (path, "column 'ring'")
    sound = {name: check.sound for name, check in checks(report).items()}
    assert (sound["bloom-filter of 'ring'"], sound["bitmap of 'kind'"]) == (1, 2)


def test_rows_that_are_not_as_the_manifest_says_are_found(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    rows = first_entry(table).file.rows
    path = only(table, rows=rows + 1)
    assert problem_lines(verified(table)) == [(path, "rows", f"found {rows + 1}, expected {rows}")]


BIRD_TYPES = [DataType.parse(kind) for kind in ("INT", "STRING", "BIGINT", "DOUBLE")]


def bird_statistics(table: Path, **change: Any) -> Any:
    """The statistics of the first file, with a column that replaces its own."""
    rows = pq.read_table(table / placed(table, first_entry(table)), partitioning=None)
    for name, values in change.items():
        position = rows.column_names.index(name)
        rows = rows.set_column(position, name, pa.array(values, rows.schema.field(name).type))
    return collect(rows, BIRD_TYPES, [FULL] * 4)


def test_statistics_that_are_not_true_are_found(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    rings = list(range(20)) if first_entry(table).file.rows == 20 else list(range(20, 45))
    wrong = bird_statistics(table, ring=[rings[0] + 1, *rings[1:]])
    path = only(table, value_stats=wrong)
    report = verified(table)
    assert problem_lines(report) == [
        (path, "statistics of 'ring'", f"min: found {rings[0] + 1}, expected {rings[0]}")
    ]
    check = checks(report)["statistics of 'ring'"]
    assert (check.checked, check.sound, check.differing) == (2, 1, 1)


def test_text_bounds_may_be_wider_than_the_values_but_not_narrower(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    rows = first_entry(table).file.rows
    wide = ["", *["zzz"] * (rows - 1)]
    nulls = bird_statistics(table).null_counts
    stats = replace(bird_statistics(table, kind=wide), null_counts=nulls)
    only(table, value_stats=stats)
    assert problem_lines(verified(table)) == []
    stats = replace(bird_statistics(table, kind=["b"] * rows), null_counts=nulls)
    path = only(table, value_stats=stats)
    assert problem_lines(verified(table)) == [
        (path, "statistics of 'kind'", "min: found b'b', expected b'auk'")
    ]


def test_wrong_null_counts_are_found(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    stats = first_entry(table).file.value_stats
    assert stats.null_counts is not None
    right = stats.null_counts[2]
    assert right is not None
    counts = (*stats.null_counts[:2], right + 1, stats.null_counts[3])
    path = only(table, value_stats=replace(stats, null_counts=counts))
    assert problem_lines(verified(table)) == [
        (path, "statistics of 'weight'", f"nulls: found {right + 1}, expected {right}")
    ]


def test_statistics_that_contradict_themselves_are_a_warning(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    stats = first_entry(table).file.value_stats
    path = only(table, value_stats=replace(stats, minimum=stats.maximum, maximum=stats.minimum))
    report = verified(table)
    assert problem_lines(report) == []
    problem = "cannot be read, or contradict themselves: they are not used"
    assert [(warning.file, warning.what, warning.problem) for warning in report.warnings] == [
        (path, f"statistics of {name!r}", problem) for name in ("ring", "kind", "weight", "wing")
    ]
    assert f"warning: {path}: statistics of 'ring': {problem}" in str(report).splitlines()


def test_a_file_of_a_snapshot_that_expires_meanwhile_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = unpack_table("append", tmp_path)
    (table / placed(table, first_entry(table))).unlink()
    monkeypatch.setattr(CheckedTable, "is_expired", True)
    report = verified(table)
    assert (problem_lines(report), report.checked, report.changed) == ([], 1, 1)


# -- file indexes --------------------------------------------------------------------------------


def sidecar_of(table: Path) -> tuple[str, Path]:
    """The first data file, and the file of its indexes."""
    entry = first_entry(table)
    path = placed(table, entry)
    return path, (table / path).parent / entry.file.extra_files[0]


def test_a_missing_index_file_is_found(tmp_path: Path) -> None:
    table = unpack_table("sidecars", tmp_path)
    path, sidecar = sidecar_of(table)
    sidecar.unlink()
    name = sidecar.relative_to(table).as_posix()
    expected = [(path, "index", f"{name}: its index file is not there")]
    assert problem_lines(verified(table)) == expected
    assert problem_lines(verified(table, sample=0.01, seed=3)) == expected


def test_a_damaged_head_of_an_index_file_is_found(tmp_path: Path) -> None:
    table = unpack_table("sidecars", tmp_path)
    path, sidecar = sidecar_of(table)
    flip(sidecar, 0)
    ((file, what, problem),) = problem_lines(verified(table))
    assert (file, what) == (path, "index")
    assert problem.startswith(f"{sidecar}: not a file index: bad magic at offset 0: found ")


def test_indexes_of_another_file_are_wrong_about_rows(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    first, second = sorted(state_of(table).entries, key=lambda entry: entry.file.rows)
    other = {first.file.name: second, second.file.name: first}
    forge(
        table,
        lambda entry: [
            entry.with_file(
                replace(entry.file, embedded_index=other[entry.file.name].file.embedded_index)
            )
        ],
    )
    report = verified(table)
    wrong = {
        name: (check.checked, check.sound, check.false_negatives, check.false_positives)
        for name, check in checks(report).items()
        if not name.startswith("statistics")
    }
    assert wrong["bloom-filter of 'ring'"][:3] == (2, 0, 45)
    # The first rows of both files happen to have equal values in places.
    assert all(checked == 2 and sound == 0 for checked, sound, _, _ in wrong.values())
    assert len(problem_lines(report)) == 10
    assert checks(report)["bloom-filter of 'ring'"].example is not None


def test_an_index_of_a_column_that_the_file_lacks_is_wrong(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    keys = read_column(pa.array(range(3)), DataType.parse("INT"))
    data = write_container({("no", "bsi"): BUILDERS["bsi"](keys)})
    path = only(table, embedded_index=data)
    ((file, what, problem),) = problem_lines(verified(table))
    assert (file, what) == (path, "bsi of 'no'")
    assert problem.startswith("cannot be of this file: column no: ")


def test_a_flipped_byte_in_an_index_is_found(tmp_path: Path) -> None:
    """Every byte of the bitmap of a file: damaged, wrong about a row, or otherwise reported."""
    table = unpack_table("append", tmp_path)
    entry = first_entry(table)
    data = entry.file.embedded_index
    assert data is not None
    index = next(
        entry
        for entry in Container.open(BytesSource(data, "x")).entries
        if entry.index_type == "bitmap"
    )
    path = placed(table, entry)
    for offset in range(index.start, index.start + index.length, 7):
        changed = bytearray(data)
        changed[offset] ^= 0xFF
        only(table, embedded_index=bytes(changed))
        ((file, what, _),) = problem_lines(verified(table))
        assert (file, what) == (path, "bitmap of 'kind'")


# -- deletion vectors and hashes -----------------------------------------------------------------


def vectors_of(table: Path) -> tuple[IndexEntry, Path]:
    entry = min(state_of(table).indexes, key=lambda index: index.name)
    return entry, next(table.rglob(entry.name))


@pytest.mark.parametrize("name", ["vectors_32", "vectors_64", "index_in_data_folder"])
def test_a_damaged_vector_is_found_and_others_are_read(tmp_path: Path, name: str) -> None:
    table = unpack_table(name, tmp_path)
    entry, path = vectors_of(table)
    assert entry.ranges
    vector_range = max(entry.ranges, key=lambda range_: range_.offset)
    flip(path, -1)  # of its checksum
    ((file, what, problem),) = problem_lines(verified(table))
    where = path.relative_to(table).as_posix()
    assert (file, what) == (where, f"deletion vector of {vector_range.data_file}")
    assert "checksum" in problem


def forge_vectors(table: Path, **change: Any) -> tuple[str, IndexEntry]:
    """Change the description of the first file of vectors."""
    entry, path = vectors_of(table)
    new = replace(entry, **change)
    forge(
        table,
        indexes=lambda every: [
            new if each_entry.name == entry.name else each_entry for each_entry in every
        ],
    )
    return path.relative_to(table).as_posix(), entry


def test_a_vector_of_another_cardinality_is_found(tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    entry, _ = vectors_of(table)
    assert entry.ranges
    first, *others = entry.ranges
    assert first.cardinality is not None
    ranges = (replace(first, cardinality=first.cardinality + 1), *others)
    path, _ = forge_vectors(table, ranges=ranges)
    ((file, what, problem),) = problem_lines(verified(table))
    assert (file, what) == (path, f"deletion vector of {first.data_file}")
    assert f"found {first.cardinality}, expected {first.cardinality + 1}" in problem


def put_vectors(table: Path, vectors: dict[str, DeletionVector]) -> str:
    """Replace the vectors of a table by these, in one file."""
    entry, path = vectors_of(table)
    written = DeletionVectorFile.write(vectors)
    name = "index-00000000-0000-0000-0000-000000000000-0"
    (path.parent / name).write_bytes(written.data)
    new = replace(
        entry, name=name, size=len(written.data), rows=len(vectors), ranges=written.ranges
    )
    forge(table, indexes=lambda _: [new])
    return (path.parent / name).relative_to(table).as_posix()


def test_vectors_of_rows_and_files_that_do_not_exist_are_found(tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    entry = first_entry(table)
    rows = entry.file.rows
    path = put_vectors(
        table,
        {
            entry.file.name: DeletionVector([1, rows]),
            "data-of-before.parquet": DeletionVector([1]),
        },
    )
    report = verified(table)
    assert problem_lines(report) == [
        (path, f"deletion vector of {entry.file.name}", f"found row {rows}, expected below {rows}"),
    ]
    assert [(warning.file, warning.what, warning.problem) for warning in report.warnings] == [
        (path, "deletion vector of data-of-before.parquet", "it is no live data file"),
    ]


def test_two_vectors_of_a_file_are_found(tmp_path: Path) -> None:
    table = unpack_table("vectors_bucketed", tmp_path)
    entry, path = vectors_of(table)
    assert entry.ranges
    again = replace(entry, name=f"{entry.name}9")
    (path.parent / again.name).write_bytes(path.read_bytes())
    forge(table, indexes=lambda every: [*every, again])
    assert problem_lines(verified(table)) == [
        (range_.data_file, "deletion vectors", f"two vectors, in {entry.name} and {again.name}")
        for range_ in entry.ranges
    ]


@pytest.mark.parametrize(
    ("ranges", "problem"),
    [
        (None, "without ranges: writers of Paimon's Java fail on the bucket"),
        ((), "of no file: when pypaimon commits, writers of Paimon's Java fail on the bucket"),
    ],
    ids=["null", "empty"],
)
def test_an_entry_without_vectors_is_a_warning(tmp_path: Path, ranges: Any, problem: str) -> None:
    table = unpack_table("vectors_32", tmp_path)
    path, _ = forge_vectors(table, ranges=ranges, rows=0)
    report = verified(table)
    assert [(warning.file, warning.what, warning.problem) for warning in report.warnings] == [
        (path, "deletion vectors", problem)
    ]
    assert (report.ok, problem_lines(report)) == (True, [])


def test_index_files_of_another_size_or_count_or_none_are_found(tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    path, entry = forge_vectors(table, rows=9)
    count = len(entry.ranges or ())
    assert problem_lines(verified(table)) == [(path, "row count", f"found 9, expected {count}")]
    (table / path).write_bytes((table / path).read_bytes() + b"\0")
    size = entry.size
    assert problem_lines(verified(table)) == [
        (path, "size", f"found {size + 1} bytes, expected {size}")
    ]
    (table / path).unlink()
    assert problem_lines(verified(table)) == [(path, "", "is not there")]


def test_hash_indexes_are_counted(tmp_path: Path) -> None:
    table = unpack_table("key_dynamic", tmp_path)
    path, entry = forge_vectors(table, rows=9)
    assert entry.index_type == "HASH"
    assert problem_lines(verified(table)) == [
        (path, "row count", f"found 9, expected {entry.rows}")
    ]


# -- keys ----------------------------------------------------------------------------------------


def compacted(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """The files of the first bucket above level 0, those of the top level first."""
    above = [entry for entry in entries if entry.file.level]
    bucket = min(entry.bucket for entry in above)
    return sorted(
        (entry for entry in above if entry.bucket == bucket), key=lambda entry: -entry.file.level
    )


def test_keys_that_are_live_twice_are_counted(tmp_path: Path) -> None:
    table = unpack_table("key_vectors", tmp_path)
    state = state_of(table)
    marked = {
        range_.data_file: range_.cardinality
        for entry in state.indexes
        for range_ in entry.ranges or ()
    }
    assert sum(cardinality or 0 for cardinality in marked.values()) > 0
    paths = {entry.file.name: placed(table, entry) for entry in state.entries}
    forge(table, indexes=lambda _: [])
    problems = problem_lines(verified(table))
    assert sorted(problems) == sorted(
        (
            paths[name],
            "keys",
            f"{count} row{'s' if count != 1 else ''} with a key that is live twice",
        )
        for name, count in marked.items()
    )


def test_files_of_a_level_whose_keys_overlap_are_found(tmp_path: Path) -> None:
    table = unpack_table("key_vectors", tmp_path)
    top, above, *_ = compacted(state_of(table).entries)
    level = top.file.level
    forge(
        table,
        lambda entry: (
            with_file(level=level)(entry) if entry.file.name == above.file.name else [entry]
        ),
    )
    assert problem_lines(verified(table)) == [
        (placed(table, above), "keys", f"overlaps {top.file.name} on level {level}")
    ]


def ring(number: int) -> bytes:
    (packed,) = pack_rows([pa.array([number], pa.int32())], [DataType.parse("INT")])
    return packed


def test_what_a_manifest_says_of_keys_is_compared(tmp_path: Path) -> None:
    table = unpack_table("key_vectors", tmp_path)
    (top, *_) = compacted(state_of(table).entries)
    file, path = top.file, placed(table, top)

    def changed(**change: Any) -> list[tuple[str, str]]:
        forge(
            table,
            lambda entry: (
                [entry.with_file(replace(file, **change))]
                if entry.file.name == file.name
                else [entry]
            ),
        )
        report = verified(table)
        assert {problem.file for problem in report.problems} <= {path}
        return [(problem.what, problem.problem) for problem in report.problems]

    assert changed(delete_rows=2) == [("rows that delete", "found 2, expected 0")]
    numbers = f"{file.min_sequence} to {file.max_sequence}"
    assert changed(max_sequence=file.max_sequence - 1) == [
        (
            "sequence numbers",
            f"found {file.min_sequence} to {file.max_sequence - 1}, expected {numbers}",
        )
    ]
    beyond = "is beyond the min or max key of the manifest"
    assert changed(min_key=ring(5)) == [("keys", f"row 0 {beyond}")]
    assert changed(max_key=ring(100)) == []
    assert changed() == []


def test_rows_that_delete_above_level_0_are_a_warning(tmp_path: Path) -> None:
    table = unpack_table("key_vectors", tmp_path)
    (top, *_) = compacted(state_of(table).entries)
    path = placed(table, top)
    forge(
        table,
        lambda entry: (
            with_file(delete_rows=None)(entry) if entry.file.name == top.file.name else [entry]
        ),
    )
    report = verified(table)
    assert [(warning.file, warning.what, warning.problem) for warning in report.warnings] == [
        (path, "rows that delete", f"unknown on level {top.file.level}")
    ]
    assert problem_lines(report) == []


def test_keys_out_of_order_are_found(tmp_path: Path) -> None:
    table = unpack_table("key_vectors", tmp_path)
    (top, *_) = compacted(state_of(table).entries)
    path = placed(table, top)
    rows = pq.read_table(table / path, partitioning=None)
    turned = rows.take(pa.array([0, 2, 1, *range(3, rows.num_rows)]))
    pq.write_table(turned, table / path)
    size = (table / path).stat().st_size
    forge(
        table,
        lambda entry: (
            with_file(size=size, embedded_index=None)(entry)
            if entry.file.name == top.file.name
            else [entry]
        ),
    )
    problems = [
        problem for problem in problem_lines(verified(table)) if "live twice" not in problem[2]
    ]
    assert problems == [(path, "keys", "row 2 is not above the row before it")]


# -- the report ----------------------------------------------------------------------------------


def test_a_sample_is_the_same_in_every_run_and_grows(tmp_path: Path) -> None:
    table = unpack_table("key_merge", tmp_path)

    def checked(sample: float, seed: int = 0) -> tuple[int, int]:
        report = verified(table, sample=sample, seed=seed)
        return report.checked, report.rows

    assert checked(0.01)[0] == 1
    assert checked(0.5) == checked(0.5)
    assert [checked(share)[0] for share in (0.3, 0.5, 1.0)] == [3, 4, 9]
    with pytest.raises(OptionError, match="sample: found 0, expected"):
        verified(table, sample=0)


def test_it_reports_its_progress(tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    states: list[tuple[int, int, int]] = []

    def progress(done: int, files: int, rows: int) -> None:
        states.append((done, files, rows))

    verified(table, progress=progress)
    assert states[-1] == (3, 3, 50)


def test_leftovers_are_listed(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    name = "data-11111111-2222-3333-4444-555555555555-0.parquet"
    (table / "bucket-0" / name).write_bytes(b"12345")
    report = verified(table)
    assert [(leftover.path, leftover.reason, leftover.bytes) for leftover in report.leftovers] == [
        (f"bucket-0/{name}", "data file", 5)
    ]
    assert (report.ok, str(report).splitlines()[-1]) == (True, "left over: 1 data file")
    as_json = json.loads(json.dumps(report.to_dict()))
    assert (as_json["ok"], as_json["warnings"], as_json["leftovers"][0]["path"]) == (
        True,
        [],
        f"bucket-0/{name}",
    )


def test_a_table_without_a_snapshot_is_sound(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    for path in (table / "snapshot").iterdir():
        path.unlink()
    report = verified(table)
    assert (report.ok, report.files, report.checked) == (True, 0, 0)
    reasons = [leftover.reason for leftover in report.leftovers]
    assert (reasons.count("data file"), reasons.count("manifest")) == (2, 6)
