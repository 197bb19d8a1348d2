"""What is done to tables while their files fail, and what the result must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from alcid import IcebergTable, PaimonTable, ParquetTable

__all__ = ["AT_ONCE", "Operation", "Rows", "operations", "rows_of", "shown", "table_rows"]

AT_ONCE = timedelta(0)
SOME = "id >= 7 AND name = 'n3'"

AnyTable: TypeAlias = PaimonTable | ParquetTable | IcebergTable
Rows: TypeAlias = tuple[tuple[int, str], ...]
"""Ids and names, sorted by id."""


@dataclass(frozen=True)
class Operation:
    """One call by a user."""

    run: Callable[[Any], Any]
    after: Rows
    """The rows of the table afterwards."""
    answer: Any = None
    """The result of the call; None: it is not checked."""
    is_repeatable: bool = True
    """Whether it may be repeated although it succeeded."""
    is_told: bool = False
    """Whether the answer reports what cannot be read."""
    only_reads: bool = False
    rest: Callable[[Any, Rows], Any] | None = None
    """Does what is missing, of one that may be cut off with some of its rows in the table: which
    these are, is given."""


def rows_of(ids: Iterable[int], prefix: str = "n") -> Rows:
    """The rows with these ids."""
    return tuple((key, f"{prefix}{key % 5}") for key in sorted(ids))


def arrow_of(rows: Rows, **more: list[str]) -> pa.Table:
    """Rows as an Arrow table."""
    ids = pa.array([number for number, _ in rows], pa.int64())
    return pa.table({"id": ids, "name": [name for _, name in rows], **more})


def shown(rows: pa.Table) -> Rows:
    """Rows as they were read, also duplicates."""
    pairs = zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)
    return tuple(sorted(pairs))


def table_rows(table: AnyTable) -> Rows:
    """All rows of a table."""
    return shown(table.scan(columns=["id", "name"]).to_arrow())


def operations(
    before: Rows,
    kind: str,
    *,
    is_keyed: bool = False,
    step: int = 0,
    frame: Callable[[pa.Table], Any] | None = None,
) -> Mapping[str, Operation]:
    """What can be done to a table that holds some rows; in each step of a series to others.

    Args:
        before: The rows.
        kind: That of the table.
        is_keyed: Whether it has a primary key.
        step: Of the series.
        frame: Makes DataFrames of the rows that are given, for a table that has a session.
    """
    convert = frame or _as_they_are
    work = {
        **_reads(before),
        **_index_work(before),
        "verify": Operation(
            lambda t: t.verify(progress=False).ok, before, True, is_told=True, only_reads=True
        ),
        "clean": Operation(lambda t: t.clean(AT_ONCE), before),
    }
    if kind != "parquet":
        first = 5 + 2 * step
        left = tuple(row for row in before if row[0] >= first)
        work["delete"] = Operation(lambda t: t.delete(f"id < {first}", progress=False), left)
    if kind == "paimon":
        work["expire"] = Operation(lambda t: t.expire_snapshots(AT_ONCE, 1), before)
    if is_keyed:
        work |= _keyed_work(before, 2 * step, convert)
    elif kind == "paimon" or frame is not None:
        work["append"] = _append(before, kind, step, convert)
    if frame is not None:
        work["read"] = Operation(
            lambda t: shown(t.read(SOME).toArrow()),
            before,
            work["look-up"].answer,
            only_reads=True,
        )
    return work


def _as_they_are(rows: pa.Table) -> pa.Table:
    return rows


def _append(before: Rows, kind: str, step: int, convert: Callable[[pa.Table], Any]) -> Operation:
    new = rows_of(range(40 + 5 * step, 45 + 5 * step))

    def append_rest(table: Any, rows_there: Rows) -> None:
        table.append(convert(arrow_of(tuple(row for row in new if row not in rows_there))))

    return Operation(
        lambda t: t.append(convert(arrow_of(new))),
        (*before, *new),
        is_repeatable=False,
        rest=append_rest if kind == "parquet" else None,  # a folder has no commits
    )


def _reads(before: Rows) -> Mapping[str, Operation]:
    def where(table: Any) -> Rows:
        return shown(table.scan(SOME).to_arrow())

    def top(table: Any) -> list[int]:
        ids: list[int] = table.scan(order_by="id DESC", limit=4).to_arrow()["id"].to_pylist()
        return ids

    some = tuple(row for row in before if row[0] >= 7 and row[1] == "n3")
    few = sum(3 <= number < 13 for number, _ in before)
    last = sorted((number for number, _ in before), reverse=True)[:4]
    return {
        "scan": Operation(table_rows, before, before, only_reads=True),
        "look-up": Operation(where, before, some, only_reads=True),
        "count": Operation(lambda t: t.count("id >= 3 AND id < 13"), before, few, only_reads=True),
        "top-n": Operation(top, before, last, only_reads=True),
    }


def _index_work(before: Rows) -> Mapping[str, Operation]:
    options = {"file-index.bitmap.columns": "name", "file-index.range-bitmap.columns": "id"}
    names = len({name for _, name in before})
    return {
        "build": Operation(lambda t: t.build_indexes(options, progress=False), before),
        "rebuild": Operation(
            lambda t: t.build_indexes(options, rebuild=True, progress=False), before
        ),
        "drop": Operation(lambda t: t.drop_indexes(), before),
        "stats": Operation(
            lambda t: t.compute_stats(["name"], progress=False)["ndv"].to_pylist(), before, [names]
        ),
    }


def _keyed_work(
    before: Rows, first: int, convert: Callable[[pa.Table], Any]
) -> Mapping[str, Operation]:
    new, gone = rows_of(range(first + 8, first + 18), "m"), {first + 1, first + 2}
    kinds = ["+I"] * len(new) + ["-D"] * len(gone)
    rows = arrow_of((*new, *((number, "") for number in sorted(gone))), kind=kinds)
    replaced = gone | {number for number, _ in new}
    kept = tuple(row for row in before if row[0] not in replaced)
    return {
        "upsert": Operation(
            lambda t: t.upsert(convert(rows), row_kind="kind"), tuple(sorted((*kept, *new)))
        ),
        "compact": Operation(lambda t: t.compact(progress=False), before),
        "repair": Operation(lambda t: t.repair(AT_ONCE, progress=False), before),
    }
