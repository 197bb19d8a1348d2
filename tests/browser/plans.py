"""Explanations of scans over many files that do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.scan import (
    Counts,
    DataFiles,
    Explanation,
    IndexUse,
    Outcome,
    Stage,
)
from alcid.scan.explain import FileOutcomes, GroupColumns, OutcomeCodes

GROUPS = 5  # of each file that is read; a row is in one of them


@dataclass
class Files:
    """As much of the files of a table as outcomes need."""

    paths: pa.StringArray
    sizes: Int64Array
    rows: Int64Array


def day_paths(files: int, days: int) -> list[str]:
    """Paths as Spark writes them, in partitions by day; each with an id of its own."""
    rng = np.random.default_rng(files)
    each = -(-files // days)
    return [
        f"dt=2025-{8 + number // each // 28:02}-{number // each % 28 + 1:02}/"
        f"part-{number % each:05}-{rng.bytes(16).hex()}-c000.snappy.parquet"
        for number in range(files)
    ]


def made_plan(paths: Sequence[str], *, read: int) -> Explanation:
    """A look-up: a quarter of the files is left by the partition, half by bounds, then by index."""
    count = len(paths)
    rng = np.random.default_rng(count)
    files = Files(
        pa.array(paths, pa.string()),
        rng.integers(4_000_000, 50_000_000, count),
        rng.integers(100_000, 1_000_000, count),
    )
    every = np.arange(count)
    codes = OutcomeCodes(count)
    left, stages = every, []
    steps: list[tuple[str, dict[str, Int64Array]]] = [
        ("partitions", {"other partitions": every[: count // 4]})
    ]
    others = rng.permutation(every[count // 4 :])
    bounds, rest = others[: count // 2], others[count // 2 :]
    steps.append(("statistics", {"ruled out by min/max or null counts": bounds}))
    missed = rest[read:]
    half = len(missed) // 2
    steps.append(
        ("file index", {"bloom filter": missed[:half], "no row in the index": missed[half:]})
    )
    for name, dropped in steps:
        before = _counts(files, left)
        for why, some in dropped.items():
            codes.note(some, Outcome(name, why))
            left = np.setdiff1d(left, some)
        counts = {why: len(some) for why, some in dropped.items() if len(some)}
        stages.append(Stage(name, before, _counts(files, left), 0.004, 8, 60_000, counts))
    codes.note(left, Outcome("read", "by pages"))
    stages += _reading(stages[-1].after)
    outcomes = FileOutcomes(cast("DataFiles", files), codes, _groups(files, codes, left))
    uses = (
        IndexUse("user_id = 4711", "bloom-filter", "ruled out", half),
        IndexUse("user_id = 4711", "bloom-filter", "may contain it", len(rest) - half),
    )
    return Explanation("user_id = 4711", tuple(stages), uses, outcomes=outcomes)


def _counts(files: Files, some: Int64Array, **numbers: Any) -> Counts:
    return Counts(
        len(some), rows=int(files.rows[some].sum()), bytes=int(files.sizes[some].sum()), **numbers
    )


def _reading(left: Counts) -> list[Stage]:
    files = left.files
    offered = Counts(files, GROUPS * files, None, 3 * files, left.bytes)
    opened = Counts(files, files, 50 * files, 3 * files, 800_000 * files)
    paged = Counts(files, files, 2 * files, 3 * files, 30_000 * files)
    counts = Counts(files, files, 2 * files, files, 30_000 * files)
    return [
        Stage("row groups", offered, opened, 0.004, files, 9_000),
        Stage("pages", opened, paged),
        Stage("rows", paged, counts, 0.02, files, 31_000 * files),
    ]


def _groups(files: Files, codes: OutcomeCodes, read: Int64Array) -> GroupColumns:
    without = codes.code(Outcome("file index", "no row in the index"))
    pages = codes.code(Outcome("read", "by pages"))
    parts = []
    for number, file in enumerate(read.tolist()):
        is_read = np.arange(GROUPS) == number % GROUPS
        rows = np.full(GROUPS, files.rows[file] // GROUPS)
        parts.append(
            GroupColumns(
                np.full(GROUPS, file),
                rows,
                np.where(is_read, pages, without),
                np.where(is_read, 3, 0),
                np.where(is_read, 2, 0),
                np.full(GROUPS, 50),
            )
        )
    return GroupColumns.of(parts)
