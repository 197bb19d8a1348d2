"""`alcid.sql` returns the rows that Spark returns on the same files without it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings as hypothesis_settings

from tests.spark.random_query import RandomQuery
from tests.spark.sql_tables import NOT_UTC, Beside, beside, settings, shown, write_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IS_FUZZ = hypothesis_settings.get_current_profile_name() == "fuzz"
ROUNDS, QUERIES = (200, 50) if IS_FUZZ else (1, 15)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    folder = tmp_path_factory.mktemp("tables")
    t, u = write_folder(folder / "t"), write_folder(folder / "u", files=2, rows=30)
    changed = {"session_timeZone": NOT_UTC, "parquet_filterPushdown": "false"}
    with settings(spark, **changed), beside(spark, t=t, u=u) as beside_spark:
        yield beside_spark


QUERIES_OF_ALL_SHAPES = {
    "inner join": "SELECT t.id, u.s FROM t JOIN u ON t.k = u.k WHERE t.g > 1 AND u.id < 9",
    "left join, filter on the left": (
        "SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.id AND u.k = 3 WHERE t.k = 3"
    ),
    "left join, filter on the right": (
        "SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.id WHERE u.k = 3"
    ),
    "left join, filter in ON of the left": (
        "SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.id AND t.k = 3"
    ),
    "left join, nulls kept": (
        "SELECT t.id, u.id FROM t LEFT JOIN u ON t.id = u.id WHERE u.k IS NULL"
    ),
    "right join": (
        "SELECT t.id, u.id, u.s FROM t RIGHT JOIN u ON t.id = u.id AND t.k = 3 WHERE u.k > 2"
    ),
    "right join, filter in ON of the right": (
        "SELECT t.id, u.id FROM t RIGHT JOIN u ON t.id = u.id AND u.k = 3"
    ),
    "full join": "SELECT t.id, u.id FROM t FULL JOIN u ON t.id = u.id AND t.k = 3 AND u.k = 3",
    "full join, filter above": "SELECT t.id, u.id FROM t FULL JOIN u ON t.id = u.id WHERE t.k = 3",
    "semi join": "SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.k AND u.g > 50 WHERE t.id < 50",
    "anti join": "SELECT * FROM t LEFT ANTI JOIN u ON t.k = u.k AND u.id = 5 WHERE t.id < 50",
    "cross join": "SELECT t.id, u.id FROM t, u WHERE t.id = 3 AND u.id IN (1, 2)",
    "self-join": "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k WHERE a.id = 5 AND b.id > 100",
    "self-join, one side whole": (
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id + 1 AND b.k = 2"
    ),
    "CTE used twice": (
        "WITH x AS (SELECT * FROM t WHERE k = 2) SELECT a.id, b.id FROM x a JOIN x b ON a.id "
        "= b.id - 7"
    ),
    "CTE of the name of a table": (
        "WITH t AS (SELECT * FROM t WHERE k = 2) SELECT * FROM t WHERE id < 40"
    ),
    "CTE used twice, with other filters": (
        "WITH x AS (SELECT id, k FROM t) SELECT id FROM x WHERE k = 1 UNION ALL SELECT id "
        "FROM x WHERE k = 2"
    ),
    "recursive CTE": (
        "WITH RECURSIVE r AS (SELECT id FROM t WHERE id = 1 UNION ALL SELECT t.id FROM t JOIN "
        "r ON t.id = r.id * 2 WHERE t.id < 99) SELECT * FROM r"
    ),
    "UNION": "SELECT id, k FROM t WHERE id < 20 UNION SELECT id, k FROM u WHERE id > 10",
    "UNION of a table with itself": (
        "SELECT s FROM t WHERE id < 9 UNION ALL SELECT s FROM t WHERE id > 150"
    ),
    "EXCEPT": "SELECT k, s FROM t WHERE id < 60 EXCEPT SELECT k, s FROM u WHERE id < 30",
    "INTERSECT": "SELECT k, s FROM t INTERSECT SELECT k, s FROM u WHERE k = 4",
    "scalar subquery": "SELECT id, (SELECT max(id) FROM u WHERE k = 3) FROM t WHERE id < 9",
    "two scalar subqueries": (
        "SELECT (SELECT max(id) FROM t WHERE k = 3), (SELECT min(id) FROM t WHERE k = 5) FROM "
        "u WHERE id = 1"
    ),
    "scalar subquery in the filter": (
        "SELECT id FROM t WHERE id > (SELECT max(id) FROM u WHERE k = 3)"
    ),
    "correlated scalar subquery": (
        "SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k AND u.g > 1) FROM t WHERE id < 30"
    ),
    "IN subquery": "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE id < 4) AND g > 0",
    "NOT IN subquery": (
        "SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE id < 3 AND k IS NOT NULL)"
    ),
    "NOT IN subquery with nulls": (
        "SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE id < 20) OR id = 4"
    ),
    "EXISTS": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k = 2)",
    "NOT EXISTS": (
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.id < 4)"
    ),
    "EXISTS or a filter": (
        "SELECT id FROM t WHERE id = 7 OR EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k = 2)"
    ),
    "subquery of the same table": (
        "SELECT id FROM t WHERE g = (SELECT max(g) FROM t WHERE k = 4) AND k = 1"
    ),
    "lateral join": (
        "SELECT t.id, x.m FROM t, LATERAL (SELECT max(u.id) AS m FROM u WHERE u.k = t.k AND "
        "u.id < 20) x WHERE t.id < 20"
    ),
    "lateral join with a limit": (
        "SELECT t.id, x.id FROM t, LATERAL (SELECT u.id FROM u WHERE u.k = t.k ORDER BY u.id "
        "LIMIT 1) x WHERE t.id < 20"
    ),
    "lateral view": (
        "SELECT id, tag FROM t LATERAL VIEW explode(tags) x AS tag WHERE id < 40 AND tag = 'x'"
    ),
    "window": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM t WHERE s = 'ab'",
    "filter over a window": (
        "SELECT * FROM (SELECT id, k, count(*) OVER (PARTITION BY k) AS n FROM t) WHERE k = 3 "
        "AND n > 2 AND id < 99"
    ),
    "rank limit": (
        "SELECT * FROM (SELECT id, k, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM t) "
        "WHERE r < 3"
    ),
    "GROUP BY and HAVING": (
        "SELECT k, count(*), max(amount) FROM t WHERE id > 20 GROUP BY k HAVING k > 2 AND "
        "count(*) > 1"
    ),
    "GROUP BY ROLLUP": (
        "SELECT k, flag, count(*) FROM t WHERE d > DATE '2025-08-10' GROUP BY ROLLUP (k, flag)"
    ),
    "aggregate with a filter": (
        "SELECT count(*) FILTER (WHERE k = 2), count(DISTINCT s) FROM t WHERE g > 0"
    ),
    "count of all": "SELECT count(*) FROM t",
    "count of none": "SELECT count(*) FROM t WHERE k = 1 AND k = 2",
    "DISTINCT": "SELECT DISTINCT s, flag FROM t WHERE id BETWEEN 20 AND 90",
    "PIVOT": (
        "SELECT * FROM (SELECT k, flag, id FROM t WHERE id < 99) PIVOT (max(id) FOR flag IN "
        "(true, false))"
    ),
    "UNPIVOT": (
        "SELECT * FROM (SELECT id, tiny, small FROM t WHERE k = 5) UNPIVOT (v FOR c IN (tiny, "
        "small))"
    ),
    "structs": "SELECT id, inner.x, inner FROM t WHERE inner.x = 1 AND inner.y IS NOT NULL",
    "a column twice": "SELECT id, id, k AS id FROM t WHERE k = 1",
    "alias below a filter": (
        "SELECT * FROM (SELECT id AS a, k AS id FROM t) WHERE id = 3 AND a > 50"
    ),
    "pipes": "FROM t |> WHERE k = 3 |> SELECT id, s |> WHERE s = 'a'",
    "VALUES beside": "SELECT t.id FROM t JOIN VALUES (1), (2) AS v(x) ON t.id = v.x",
    "TABLE": "TABLE u",
    "CASE": "SELECT id FROM t WHERE CASE WHEN k = 1 THEN g > 0 ELSE id < 20 END",
    "coalesce": "SELECT id FROM t WHERE coalesce(k, 1) = 1 AND id < 90",
    "cast": "SELECT id FROM t WHERE cast(g AS string) = '60.0' OR cast(id AS string) LIKE '1%'",
    "function": "SELECT id FROM t WHERE upper(s) = 'AB' AND id > 10",
    "two columns": "SELECT id FROM t WHERE id > k * 20 AND tiny < small AND k = 3",
    "collation": "SELECT id FROM t WHERE s COLLATE UTF8_LCASE = 'a' AND k = 1",
    "no table": "SELECT 1",
}


@pytest.mark.parametrize("name", QUERIES_OF_ALL_SHAPES)
def test_query_gives_the_rows_of_plain_spark(tables: Beside, name: str) -> None:
    assert tables.check(QUERIES_OF_ALL_SHAPES[name]) > 0


FILTERS = [
    "k = 3",
    "3 > k",
    "k <> 3",
    "k <=> NULL",
    "NOT k <=> 3",
    "k IN (1, 2, NULL)",
    "k NOT IN (1, 2)",
    "id IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23)",
    "id NOT IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23)",
    "s IN ('a', 'null', '日本', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', NULL)",
    "k IS NULL OR k > 5",
    "id BETWEEN 10 AND 20",
    "tiny = -100 OR tiny > 90",
    "small < 100",
    "k > 2.5",
    "tiny < 1000",
    "f = 0",
    "f = -0.0",
    "f = float(0.1)",
    "f = 0.1",
    "f > 0.1",
    "f >= float(0.1)",
    "isnan(f)",
    "NOT isnan(f)",
    "f = float('NaN')",
    "f IN (float(0.1), float('NaN'), float('-0.0'))",
    "g < 0",
    "g > 60",
    "g = 'NaN'",
    "g <> 0",
    "g >= double('Infinity')",
    "g IN (0, 3, 60, 80, 1, 2, 4, 5, 6, 7, 8, double('NaN'))",
    "amount = 1.25",
    "amount > 10",
    "amount IN (1.25, 2.5, 3)",
    "amount < 0.005",
    "huge > 3000000000000000000000",
    "huge = 100000000000000000000.0000000001",
    "s = 'ab'",
    "s = ''",
    "s > 'ab'",
    "s < 'ß'",
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "s LIKE '%b%'",
    "s LIKE 'b\\\\%'",
    "s LIKE 'b_d'",
    "s LIKE 'b#_d' ESCAPE '#'",
    "s NOT LIKE 'a%'",
    "s NOT LIKE 'a_c'",
    "startswith(s, 'ab')",
    "b = X'0500FA'",
    "b > X'50'",
    "flag",
    "NOT flag",
    "flag IS NOT TRUE",
    "flag = (k > 3)",
    "d = DATE '2025-08-10'",
    "d > '2025-09-01'",
    "d < TIMESTAMP '2025-08-10 12:00:00'",
    "d IN (DATE '2025-08-10', DATE '2025-08-12')",
    "ts = TIMESTAMP '2025-11-02 01:30:00'",
    "ts > TIMESTAMP '2025-11-02 01:30:00'",
    "ts <= '2025-11-02T06:00:00Z'",
    "ts < TIMESTAMP '1600-01-01 00:00:00'",
    "ts >= DATE '2025-11-02'",
    "wall > TIMESTAMP_NTZ '2025-11-02 05:30:00'",
    "wall = '2025-11-02 04:20:00'",
    "wall < TIMESTAMP '2025-11-02 05:30:00'",
    "to_date(ts) = DATE '2025-11-01'",
    "dt = '20250801'",
    "dt = 20250801 OR dt IS NULL",
    "dt > '20250731' AND NOT (k = 3 OR g > 1)",
    "tags IS NULL",
    "inner IS NOT NULL AND inner.x = 1",
    "array_contains(tags, 'x')",
    "rand(5) >= 0 AND k = 1",
    "k = 3 AND upper(s) = 'AB' OR k = 5 AND length(s) > 1",
    "k = 3 OR upper(s) = 'AB'",
    "NOT (k = 3 AND upper(s) = 'AB')",
    "k + 1 = 4 AND id > 3",
]


@pytest.fixture(scope="module")
def plain_rows(tables: Beside) -> dict[str, list[str]]:
    """The matching rows of each filter, all evaluated by plain Spark in one query."""
    chosen = ", ".join(f"({condition}) AS `{number}`" for number, condition in enumerate(FILTERS))
    query = "SELECT {} FROM t ORDER BY id"
    rows = shown(tables.plain(query.format("*")))
    truths = tables.plain(query.format(chosen)).toArrow()
    return {
        condition: [row for row, truth in zip(rows, column.to_pylist(), strict=True) if truth]
        for condition, column in zip(FILTERS, truths.columns, strict=True)
    }


@pytest.mark.parametrize("condition", FILTERS)
def test_filter_gives_the_rows_of_plain_spark(
    tables: Beside, plain_rows: dict[str, list[str]], condition: str
) -> None:
    rows = sorted(shown(tables.ours(f"SELECT * FROM t WHERE {condition}")))
    assert rows == sorted(plain_rows[condition])
    assert rows or condition == "f = 0.1"  # a float is not equal to this double


LIMITS = {
    "ascending": "SELECT * FROM t ORDER BY g, id LIMIT 7",
    "descending": "SELECT id, g FROM t WHERE k = 3 ORDER BY g DESC, id LIMIT 7",
    "nulls last": "SELECT id FROM t ORDER BY f NULLS LAST, id DESC LIMIT 150",
    "nulls first": "SELECT id FROM t ORDER BY amount DESC NULLS FIRST, id LIMIT 30",
    "text": "SELECT s, id FROM t WHERE dt = '20250801' ORDER BY s, id LIMIT 9",
    "by an alias": "SELECT id AS x, k FROM t WHERE k > 1 ORDER BY x DESC LIMIT 3",
    "by what is not selected": "SELECT s FROM t ORDER BY id DESC LIMIT 3",
    "by an expression": "SELECT id FROM t ORDER BY -id LIMIT 3",
    "with an offset": "SELECT id FROM t ORDER BY id DESC LIMIT 3 OFFSET 2",
    "with a part of the filter left to Spark": (
        "SELECT id FROM t WHERE upper(s) = 'AB' ORDER BY id DESC LIMIT 3"
    ),
    "limit 0": "SELECT id FROM t ORDER BY id LIMIT 0",
    "of a join": "SELECT t.id FROM t JOIN u ON t.k = u.k ORDER BY t.id DESC, u.id LIMIT 4",
    "in a join": (
        "SELECT x.id, u.id FROM (SELECT * FROM t ORDER BY id DESC LIMIT 4) x LEFT JOIN u ON "
        "x.k = u.k ORDER BY 1, 2"
    ),
    "of two legs": (
        "(SELECT id FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM t ORDER BY id DESC "
        "LIMIT 2)"
    ),
    "below a filter": (
        "SELECT id FROM (SELECT * FROM t ORDER BY id LIMIT 20) WHERE k = 3 ORDER BY id"
    ),
    "below a group": (
        "SELECT k, count(*) FROM (SELECT * FROM t ORDER BY id DESC LIMIT 20) GROUP BY k ORDER BY k"
    ),
    "in a scalar subquery": (
        "SELECT id, (SELECT id FROM t ORDER BY id DESC LIMIT 1) FROM u WHERE id < 3 ORDER BY id"
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_first_rows_are_those_of_plain_spark(tables: Beside, name: str) -> None:
    tables.check(LIMITS[name], ordered=True)


@pytest.mark.parametrize(("limit", "expected"), [(5, 5), (500, 20)])
def test_limit_without_an_order_gives_as_many_rows(
    tables: Beside, limit: int, expected: int
) -> None:
    rows = tables.ours(f"SELECT * FROM t WHERE k = 3 LIMIT {limit}").collect()
    assert [row["k"] for row in rows] == [3] * expected


def seed() -> str:
    default = "2025" if hypothesis_settings().derandomize else str(random.getrandbits(32))
    return os.environ.get("ALCID_SEED", default)


@pytest.mark.fuzz
@pytest.mark.parametrize("number", range(ROUNDS))
def test_random_queries_give_the_rows_of_plain_spark(tables: Beside, number: int) -> None:
    random_seed = f"{seed()}/{number}"
    made = RandomQuery(random.Random(random_seed))
    for _ in range(QUERIES):
        query, is_ordered = made.query()
        try:
            tables.check(query, ordered=is_ordered)
        except AssertionError as error:
            raise AssertionError(f"ALCID_SEED={random_seed.partition('/')[0]}: {query}") from error
