"""Everything in turns, on one table and in one session; whatever comes out is checked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

import alcid
from alcid.tables.iceberg_table import IcebergTable
from benchmarks.iceberg.lake import PLAIN, Lake
from benchmarks.iceberg.ways import WAYS
from benchmarks.measure import Cost
from benchmarks.queries.data import Rows
from benchmarks.queries.serve import Server
from benchmarks.queries.truth import Asked, Questions
from benchmarks.questions import WrongAnswerError
from benchmarks.spark.contest import Sample
from benchmarks.spark.process_tree import tree_cost_of

__all__ = [
    "BUILD",
    "CHANGES",
    "COUNT",
    "DELETES",
    "Changed",
    "ask",
    "ask_all",
    "build",
    "change_all",
    "count_all",
]

_SEED = 13
_INDEXES = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "class_id",
    "file-index.range-bitmap.columns": "score,user_id",
}
COUNT, BUILD = "count", "build"
DELETES = {
    "delete-share": "delete the 1 % of rows with the lowest scores, out of all files",
    "delete-ids": "delete ten rows by their ids",
}
CHANGES = {
    COUNT: "count the distinct values of all columns",
    BUILD: "build the indexes of all files",
    **DELETES,
}
_FAR = 0.08
"""As much as an estimate of distinct values may be wrong: five times its standard error."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of the table, and what it took over all processes."""

    what: str
    who: str
    """`alcid` or `iceberg`."""
    cost: Cost


def ask_all(ways: Sequence[str], rows: Rows, repeats: int) -> Iterator[Sample]:
    """Ask everything in turns.

    Raises:
        WrongAnswerError: An answer is wrong.
    """
    random, questions = np.random.default_rng(_SEED), Questions(rows)
    servers = {name: Server(WAYS[name].start()) for name in ways}
    for repetition in range(-1, repeats):  # the first is not counted: Java and page cache get warm
        _say(f"questions: {repetition + 1} of {repeats}")
        first = repetition % len(ways)
        for asked in questions.draw(random):
            for name in (*ways[first:], *ways[:first]):
                sample = ask(servers[name], name, asked)
                if repetition >= 0:
                    yield sample


def ask(server: Server, way: str, asked: Asked) -> Sample:
    """Ask one question.

    Raises:
        WrongAnswerError: The answer is wrong.
    """
    request = {"question": asdict(asked.question), "fresh": WAYS[way].fresh}
    cost, answer = tree_cost_of(lambda: server.ask(request))
    if not asked.right(answer):
        raise WrongAnswerError(f"{asked.question.name}: {way} gave a wrong answer: {answer}")
    return Sample(asked.question.name, way, answer["seconds"], cost.cpu, asked.rows)


def count_all(lake: Lake, rows: Rows, repeats: int) -> Iterator[Changed]:
    """Count distinct values in turns.

    Raises:
        WrongAnswerError: A count is too far off.
    """
    name, table = lake.name(PLAIN), _open(lake)  # it is kept, as the session keeps its own
    counts: dict[str, Callable[[], object]] = {
        "iceberg": lambda: lake.count_distinct(PLAIN),
        "alcid": lambda: table.compute_stats(progress=False),
    }
    right = {
        "id": len(rows.ids),  # each is another
        "user_id": len(np.unique(rows.users)),
        "class_id": len(np.unique(rows.classes)),
    }
    for repetition in range(-1, repeats):
        _say(f"statistics: {repetition + 1} of {repeats}")
        for who, count in _turned(counts, repetition):
            _forget(table)
            cost, _ = tree_cost_of(count)
            found = _listed(_open(lake))
            if far := [c for c, ndv in right.items() if abs(found[c] - ndv) > _FAR * ndv]:
                raise WrongAnswerError(f"{name}: {who} found {found}, too far off: {far}")
            if repetition >= 0:
                yield Changed(COUNT, who, cost)


def build(lake: Lake) -> Changed:
    """Build the indexes that questions are asked with, once.

    Raises:
        WrongAnswerError: Not every file got them.
    """
    table = _open(lake)
    cost, report = tree_cost_of(lambda: table.build_indexes(_INDEXES, progress=False))
    if report.indexed != table.files or report.skipped:
        raise WrongAnswerError(f"{report}: expected {table.files} files")
    return Changed(BUILD, "alcid", cost)


def change_all(lake: Lake, rows: Rows, repeats: int) -> Iterator[Changed]:
    """Delete rows in turns; after each delete the table becomes what it was before.

    Raises:
        WrongAnswerError: Other rows are left than should be.
    """
    name, table, before = lake.name(PLAIN), _open(lake), lake.snapshot(PLAIN)
    deletes: dict[str, Callable[[str], object]] = {
        "iceberg": lambda where: lake.spark.sql(f"DELETE FROM {name} WHERE {where}"),
        "alcid": table.delete,
    }
    random = np.random.default_rng(_SEED)
    share = round(float(np.quantile(rows.scores, 0.01)), 6)
    for repetition in range(-1, repeats):
        _say(f"deletes: {repetition + 1} of {repeats}")
        ids = random.choice(rows.ids, 10, replace=False)
        chosen = {
            "delete-share": (f"score < {share}", rows.scores < share),
            "delete-ids": (f"id IN ({', '.join(map(str, ids))})", np.isin(rows.ids, ids)),
        }
        for what, (where, deleted) in chosen.items():
            left = rows.ids[~deleted]
            for who, delete in _turned(deletes, repetition):
                cost, _ = tree_cost_of(lambda: delete(where))  # noqa: B023
                if (found := lake.totals(PLAIN)) != (expected := (len(left), int(left.sum()))):
                    raise WrongAnswerError(
                        f"{what}: {who} left rows and sum {found}, expected {expected}"
                    )
                lake.go_back(PLAIN, before)
                if repetition >= 0:
                    yield Changed(what, who, cost)


def _open(lake: Lake) -> IcebergTable:
    return alcid.iceberg(lake.name(PLAIN), lake.spark)


def _forget(table: IcebergTable) -> None:
    """Remove statistics: ours would not be written where the metadata say the same already."""
    if table.snapshot_id is not None:
        table.catalog.remove_statistics(table.catalog.load(), table.snapshot_id)


def _listed(table: IcebergTable) -> dict[str, int]:
    """The distinct values that the metadata of the present snapshot say, by column."""
    assert table.snapshot_id is not None
    blobs = table.metadata.statistics[table.snapshot_id].blobs
    names = {field.id: field.name for field in table.metadata.schema.fields}
    return {names[blob.fields[0]]: int(blob.properties["ndv"]) for blob in blobs}


def _turned(
    contenders: Mapping[str, Callable[..., object]], repetition: int
) -> list[tuple[str, Callable[..., object]]]:
    """All of them; in every other repetition another one is first."""
    each = list(contenders.items())
    return each if repetition % 2 else each[::-1]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
