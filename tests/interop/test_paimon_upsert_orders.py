"""Options that choose the row of a key, and what a row does: we follow them as Java does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.keyed_tables import VECTORS, KeyedTable, Peers, Row, peers

__all__ = ["peers"]

COLUMNS = {"id": "INT", "at": "INT", "more": "DOUBLE", "v": "STRING"}
ONE_BUCKET = VECTORS | {"bucket": "1"}
NAN, INFINITE = float("nan"), float("inf")


def _order(*positions: int, descending: bool = False) -> Callable[[Row, Row], bool]:
    """Nulls are lowest in either order, NaN is above all numbers."""

    def rank(row: Row) -> list[tuple[bool, bool, float]]:
        keys = []
        for position in positions:
            value = 0.0 if row[position] is None else float(row[position])
            is_nan = math.isnan(value)
            number = 0.0 if is_nan else -value if descending else value
            keys.append((row[position] is not None, is_nan is not descending, number))
        return keys

    return lambda new, old: rank(new) >= rank(old)


ORDERS: dict[str, tuple[dict[str, str], Callable[[Row, Row], bool]]] = {
    "ascending": ({"sequence.field": "at"}, _order(1)),
    "descending": (
        {"sequence.field": "at", "sequence.field.sort-order": "descending"},
        _order(1, descending=True),
    ),
    "two fields": ({"sequence.field": "at,more"}, _order(1, 2)),
    "floats": ({"sequence.field": "more"}, _order(2)),
}
# Written one after the other; each step gives some of the keys 0 to 5 another rank.
RANKS: list[list[tuple[int | None, float | None]]] = [
    [(5, 1.0), (5, None), (None, 2.0), (7, -1.0), (3, NAN), (-4, -INFINITE)],
    [(5, 2.0), (4, 9.0), (0, 1.0), (7, -2.0), (3, INFINITE), (-4, 0.5)],
    [(5, 2.0), (6, None), (None, None), (8, None), (3, NAN), (-5, NAN)],
    [(9, 0.0), (6, None), (-1, 3.0), (8, -1.5), (4, None), (-4, -0.5)],
]


# Paimon 1.4.2 compares floats differently within a batch and between files.
TURNS = [
    (order, java, turns)
    for order, java in product(ORDERS, ("java", "newest"))
    if java == "newest" or order in ("ascending", "descending")
    for turns in (("we", java, "we", java), (java, "we", "we", java))
]


@pytest.mark.parametrize(("order", "java", "turns"), TURNS, ids=str)
def test_the_greatest_by_the_sequence_field_wins(
    peers: Peers, tmp_path: Path, order: str, java: str, turns: Sequence[str]
) -> None:
    options, wins = ORDERS[order]
    table = KeyedTable(tmp_path / "t", peers, COLUMNS, ["id"], ONE_BUCKET | options, wins=wins)
    for step, (who, ranks) in enumerate(zip(turns, RANKS, strict=True)):
        table.put(who, *((key, *rank, f"step {step}") for key, rank in enumerate(ranks)))
        table.check()
    table.compact(java)
    table.check()


@pytest.mark.parametrize("who", ["we", "java", "newest"])
def test_within_a_batch_the_greatest_wins_and_then_the_last(
    peers: Peers, tmp_path: Path, who: str
) -> None:
    options = ONE_BUCKET | {"sequence.field": "at"}
    table = KeyedTable(tmp_path / "t", peers, COLUMNS, ["id"], options, wins=_order(1))
    table.put(who, (1, 2, None, "a"), (1, 3, None, "b"), (1, 3, None, "c"), (1, 2, None, "d"))
    assert table.rows == {(1,): (1, 3, None, "c")}
    table.check()
    table.put(who, (1, 3, None, "e"), (1, None, None, "f"), (2, None, None, "g"))
    assert table.rows[1,] == (1, 3, None, "e")
    table.check()


@pytest.mark.parametrize("who", ["we", "java", "newest"])
def test_a_delete_that_is_older_by_the_sequence_field_deletes_nothing(
    peers: Peers, tmp_path: Path, who: str
) -> None:
    options = ONE_BUCKET | {"sequence.field": "at"}
    table = KeyedTable(tmp_path / "t", peers, COLUMNS, ["id"], options)
    table.put("we", *((key, 5, None, "a") for key in range(5)))
    table.write(who, [(key, key + 3, None, None) for key in range(5)], ["-D"] * 5)
    table.rows = {(key,): (key, 5, None, "a") for key in (0, 1)}
    table.check()
    # A deleted key comes back with any rank, since nothing is left of the delete.
    table.put(who, (4, 1, None, "b"))
    table.check()


@pytest.mark.parametrize("who", ["we", "java", "newest"])
def test_rows_of_all_kinds_in_one_batch(peers: Peers, tmp_path: Path, who: str) -> None:
    columns = {"id": "INT", "v": "STRING"}
    table = KeyedTable(tmp_path / "t", peers, columns, ["id"], ONE_BUCKET)
    table.put("java", *((key, "a") for key in range(6)))
    table.write(
        who,
        [
            (0, "b"),
            (1, "b"),
            (1, "c"),
            (2, None),
            (3, "b"),
            (3, None),
            (4, None),
            (4, "c"),
            (9, "b"),
        ],
        ["+I", "-U", "+U", "-D", "+U", "-D", "-D", "+I", "-D"],
    )
    table.rows = {(0,): (0, "b"), (1,): (1, "c"), (4,): (4, "c"), (5,): (5, "a")}
    table.check()


@pytest.mark.parametrize("who", ["we", "java", "newest"])
def test_deletes_are_ignored_where_the_table_says_so(
    peers: Peers, tmp_path: Path, who: str
) -> None:
    options = ONE_BUCKET | {"ignore-delete": "true"}
    table = KeyedTable(tmp_path / "t", peers, {"id": "INT", "v": "STRING"}, ["id"], options)
    table.put("we", (1, "a"), (2, "a"))
    table.write(who, [(1, None), (2, "x"), (2, "b")], ["-D", "-U", "+U"])
    table.rows[2,] = (2, "b")
    table.check()


@pytest.mark.parametrize("who", ["we", "java", "newest"])
def test_updates_before_are_ignored_where_the_table_says_so(
    peers: Peers, tmp_path: Path, who: str
) -> None:
    options = ONE_BUCKET | {"ignore-update-before": "true"}
    table = KeyedTable(tmp_path / "t", peers, {"id": "INT", "v": "STRING"}, ["id"], options)
    table.put("we", (1, "a"), (2, "a"))
    table.write(who, [(1, None), (2, None)], ["-U", "-D"])
    table.rows = {(1,): (1, "a")}
    table.check()


@pytest.mark.parametrize("release", ["java_paimon", "newest_paimon"])
def test_a_column_of_the_table_says_what_rows_do(
    request: pytest.FixtureRequest, tmp_path: Path, release: str
) -> None:
    java: JavaPaimon = request.getfixturevalue(release)
    path = tmp_path / "t"
    columns = {"id": "INT NOT NULL", "op": "STRING", "v": "STRING"}
    options = ONE_BUCKET | {"rowkind.field": "op"}
    java.create(path, columns, primary_keys=["id"], options=options)

    def rows(*changes: tuple[int, str, str | None]) -> pa.Table:
        ids, kinds, values = zip(*changes, strict=True)
        return pa.table(
            {"id": pa.array(ids, pa.int32()), "op": kinds, "v": pa.array(values, "string")}
        )

    def check(*expected: tuple[int, str, str]) -> None:
        for rows_read in (java.read(path), alcid.paimon(path).scan().to_arrow()):
            assert sorted(tuple(row.values()) for row in rows_read.to_pylist()) == list(expected)

    table = alcid.paimon(path)
    table.upsert(rows((1, "+I", "a"), (2, "+I", "a"), (3, "+I", "a"), (4, "-D", None)))
    check((1, "+I", "a"), (2, "+I", "a"), (3, "+I", "a"))
    java.write(path, rows((1, "+U", "b"), (2, "-D", None)))
    check((1, "+U", "b"), (3, "+I", "a"))
    table.upsert(rows((1, "-U", "b"), (1, "+U", "c"), (3, "-D", None), (5, "+I", "c")))
    check((1, "+U", "c"), (5, "+I", "c"))
    java.compact(path)
    check((1, "+U", "c"), (5, "+I", "c"))
