"""Row groups that cannot have a row, by what the footer of their file says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alcid.plan.bounds import Bounds
from alcid.plan.leaves import Leaf
from alcid.plan.table_files import DataFiles, FileScan
from alcid.plan.verdict import Verdict, judge
from alcid.predicate import Predicate

__all__ = ["judge_groups", "kept_groups"]


def kept_groups(
    table: DataFiles,
    file: int,
    scan: FileScan,
    where: Predicate,
    leaves: Mapping[int, Leaf],
) -> list[int]:
    """The row groups of a file that may have a row of a normalized predicate."""
    verdict = judge_groups(table, file, scan, where, leaves)
    possible = verdict.possible & (np.array(scan.group_rows, np.int64) > 0)
    return [int(group) for group in np.flatnonzero(possible)]


def judge_groups(
    table: DataFiles,
    file: int,
    scan: FileScan,
    where: Predicate,
    leaves: Mapping[int, Leaf],
) -> Verdict:
    """What the footer of a file says of each of its row groups.

    Args:
        table: The table.
        file: Its file.
        scan: The file, whose footer was read.
        where: A normalized predicate.
        leaves: Its leaves.
    """
    rows = scan.group_rows
    count = len(rows)
    groups = {
        place: next(group for group in leaf.groups if group.files[file])
        for place, leaf in leaves.items()
        if not leaf.is_partition
    }
    names = {g.name for g in groups.values() if g.name is not None and not g.problem}
    known = table.group_statistics(file, scan, sorted(names)) if names and count else {}
    row_counts = np.array(rows, np.int64)

    def ask(node: Predicate) -> Verdict:
        leaf, group = leaves[id(node)], groups.get(id(node))
        if group is None or group.name is None or group.problem or group.name not in known:
            verdict = leaf.verdict if group is None or group.name is None else leaf.by_partition
            possible, certain = bool(verdict.possible[file]), bool(verdict.certain[file])
            return Verdict.same(count, possible=possible, certain=certain)
        return Bounds(known[group.name], row_counts).ask(leaf.question(group))

    return judge(where, count, ask)
