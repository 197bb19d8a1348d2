"""What `alcid.sql` asks tables for, and that it leaves the user's session alone."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.errors import OptionError, UnsupportedError
from alcid.opening import parquet
from alcid.spark.jvm.planning import SideSession
from alcid.spark.sql import explain_sql, sql
from tests.spark.sql_tables import NOT_UTC, SCHEMA, Beside, beside, settings, shown, write_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = (*SCHEMA.names, "dt")


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    folder = tmp_path_factory.mktemp("tables")
    t, u = write_folder(folder / "t"), write_folder(folder / "u", files=2, rows=30)
    with settings(spark, session_timeZone=NOT_UTC), beside(spark, t=t, u=u) as beside_spark:
        yield beside_spark


# -- what is asked -----------------------------------------------------------------------------

WHERE = {
    "k = 3": "k = 3",
    "3 > k": "k < 3",
    "NOT k > 3": "k <= 3",
    "k <=> NULL": "k IS NULL",
    "NOT k <=> 3": "k <> 3 OR k IS NULL",
    "k IN (1, 2, NULL)": "k IN (1, 2)",
    "k NOT IN (1, 2)": "k NOT IN (1, 2)",
    "id IN (9, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, NULL)": "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
    "s IN ('null','b','c','d','e','f','g','h','i','j','a\n','',NULL)": (
        r"s IN ('', 'a\n', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'null')"
    ),
    "d IN (DATE '2025-08-01', DATE '1066-10-14')": "d IN (DATE '2025-08-01', DATE '1066-10-14')",
    "f = float(0.1)": "f = 0.10000000149011612D",
    "f < float('-Infinity')": "f < CAST('-Infinity' AS DOUBLE)",
    "f IN (1, float('NaN'))": "f IN (1.0D, CAST('NaN' AS DOUBLE))",
    "isnan(g)": "g = CAST('NaN' AS DOUBLE)",
    "NOT isnan(g)": "g <> CAST('NaN' AS DOUBLE) OR g IS NULL",
    "g = 0": "g = 0.0D",
    "amount = 1.5": "amount = 1.50",
    "k > 2.5": "k > 2",
    "s = '日本'": "s = '日本'",
    "s LIKE 'a%'": "s LIKE 'a%'",
    "s = 'it''s' OR s = \"\"": r"s = 'it\'s' OR s = ''",
    "b = X'00FF'": "b = X'00FF'",
    "flag": "flag = TRUE",
    "NOT flag": "flag <> TRUE",
    "d = '2025-08-10'": "d = DATE '2025-08-10'",
    "d < '1500-01-01'": "d < DATE '1500-01-01'",
    "ts < TIMESTAMP '1500-01-01 00:00:00'": "ts < TIMESTAMP '1500-01-01 04:56:02+00:00'",
    "ts = TIMESTAMP '2025-11-02 01:30:00'": "ts = TIMESTAMP '2025-11-02 05:30:00+00:00'",
    "ts = TIMESTAMP '2025-11-02 01:30:00 -05:00'": "ts = TIMESTAMP '2025-11-02 06:30:00+00:00'",
    "wall > '2025-11-02 05:30:00.000001'": "wall > TIMESTAMP_NTZ '2025-11-02 05:30:00.000001'",
    "dt = '20250801'": "dt = 20250801",
    "k = 1 AND (g > 1 OR s = 'a')": "k = 1 AND (g > 1.0D OR s = 'a')",
    "tags IS NULL": "tags IS NULL",
}


# Equalities on one column that are joined by OR are evaluated as one IN.
BOUND = {"s = 'it''s' OR s = \"\"": r"s IN ('it\'s', '')"}


@pytest.mark.parametrize("condition", WHERE)
def test_filter_that_is_known_goes_to_the_table(tables: Beside, condition: str) -> None:
    (use,) = explain_sql(f"SELECT * FROM t WHERE {condition}", t=tables["t"]).tables
    assert (use.where, use.exact, use.reason) == (WHERE[condition], True, "")
    assert (use.occurrences, use.columns, use.order_by, use.limit) == (1, EVERY, "", None)
    assert use.explanation is not None
    assert use.explanation.predicate == BOUND.get(condition, use.where)


PARTLY = {
    "k = 3 AND upper(s) = 'AB'": "k = 3 AND s IS NOT NULL",
    "(k = 3 OR upper(s) = 'AB') AND id > 5": "id > 5",
    "k = 3 AND length(s) = 1 OR k = 4 AND length(s) = 2": "k = 3 OR k = 4",
    "NOT (k = 3 OR upper(s) = 'AB')": "k <> 3 AND s IS NOT NULL",
    "s LIKE 'ab_d' AND k = 1": "s LIKE 'ab%' AND k = 1",
    "s LIKE 'a#_d_' ESCAPE '#' AND k = 1": "s LIKE 'a%' AND k = 1",
    "s LIKE 'ab%cd'": "s LIKE 'ab%'",
    "s LIKE '%b' AND s LIKE '%c%' AND k = 1": "s IS NOT NULL AND k = 1",
    "id > k AND id < 3": "id < 3 AND k IS NOT NULL",
    "inner.x = 1 AND k = 1": "k = 1",
    "rand() < 0.5 AND k = 1": "k = 1",
    "s COLLATE UTF8_LCASE = 'a' AND k = 1": "k = 1",
    "cast(g AS string) = '1' AND k = 1": "g IS NOT NULL AND k = 1",
    "s = cast(X'FF' AS string) AND k = 1": "s IS NOT NULL AND k = 1",
    "d > DATE '+12000-01-01' AND k = 1": "d IS NOT NULL AND k = 1",
    "ts > TIMESTAMP '+12000-01-01 00:00:00' AND k = 1": "ts IS NOT NULL AND k = 1",
}


@pytest.mark.parametrize("condition", PARTLY)
def test_part_that_is_not_known_is_left_to_spark(tables: Beside, condition: str) -> None:
    (use,) = explain_sql(f"SELECT * FROM t WHERE {condition}", t=tables["t"]).tables
    assert (parts_of(use.where), use.exact) == (parts_of(PARTLY[condition]), False)
    assert use.reason == ""


def parts_of(where: str) -> list[list[str]]:
    """Legs and conjuncts of a filter: Spark adds `IS NOT NULL` in any order."""
    return [sorted(leg.split(" AND ")) for leg in where.split(" OR ")]


@pytest.mark.parametrize(
    "condition", ["k = 3 OR upper(s) = 'AB'", "NOT (k = 3 AND coalesce(s, 'a') = 'a')"]
)
def test_leg_that_is_not_known_means_every_row(tables: Beside, condition: str) -> None:
    (use,) = explain_sql(f"SELECT id FROM t WHERE {condition}", t=tables["t"]).tables
    reason = "no filter stands over one of its occurrences that it could answer"
    assert (use.where, use.exact, use.reason) == ("TRUE", False, reason)
    assert use.columns == ("id", "k", "s")


ASKED: dict[str, dict[str, tuple[str, int]]] = {
    "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE t.k = 3": {
        "t": ("k = 3", 1),
        "u": ("id IS NOT NULL", 1),
    },
    "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id AND t.k = 3": {
        "t": ("TRUE", 1),
        "u": ("id IS NOT NULL", 1),
    },
    "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE u.k IS NULL": {
        "t": ("TRUE", 1),
        "u": ("id IS NOT NULL", 1),
    },
    "SELECT t.id FROM t FULL JOIN u ON t.id = u.id AND t.k = 3 AND u.k = 3": {
        "t": ("TRUE", 1),
        "u": ("TRUE", 1),
    },
    "SELECT t.id FROM t RIGHT JOIN u ON t.id = u.id WHERE t.k = 3 AND u.g > 1": {
        "t": ("k = 3 AND id IS NOT NULL", 1),
        "u": ("g > 1.0D AND id IS NOT NULL", 1),
    },
    "SELECT a.id FROM t a JOIN t b ON a.k = b.k WHERE a.id = 5 AND b.id > 100": {
        "t": ("id = 5 AND k IS NOT NULL OR id > 100 AND k IS NOT NULL", 2),
        "u": ("FALSE", 0),
    },
    "SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.k = 2": {
        "t": ("TRUE", 2),
        "u": ("FALSE", 0),
    },
    "WITH x AS (SELECT * FROM t WHERE k = 2) SELECT a.id FROM x a, x b WHERE b.g > 1": {
        "t": ("k = 2 OR k = 2 AND g > 1.0D", 2),
        "u": ("FALSE", 0),
    },
    "SELECT id FROM t WHERE k = 1 UNION ALL SELECT id FROM t WHERE k = 1": {
        "t": ("k = 1", 2),
        "u": ("FALSE", 0),
    },
    "SELECT id, (SELECT max(id) FROM u WHERE k = 3) FROM t WHERE id < 9": {
        "t": ("id < 9", 1),
        "u": ("k = 3", 1),
    },
    "SELECT id FROM t WHERE k = 1 AND g > (SELECT max(g) FROM t WHERE k = 4)": {
        "t": ("k = 1 AND g IS NOT NULL OR k = 4", 2),
        "u": ("FALSE", 0),
    },
    "SELECT k FROM (SELECT k, count(*) FROM t GROUP BY k) WHERE k > 3": {
        "t": ("k > 3", 1),
        "u": ("FALSE", 0),
    },
    "SELECT * FROM (SELECT k, count(*) OVER () FROM t) WHERE k > 3": {
        "t": ("TRUE", 1),
        "u": ("FALSE", 0),
    },
    "SELECT * FROM (SELECT id AS a, k AS id FROM t LIMIT 9) WHERE id = 3": {
        "t": ("TRUE", 1),
        "u": ("FALSE", 0),
    },
    "SELECT * FROM (SELECT id AS a, rand() AS r, k AS id FROM t) WHERE id = 3 AND r > 0": {
        "t": ("k = 3", 1),
        "u": ("FALSE", 0),
    },
}


@pytest.mark.parametrize("query", ASKED)
def test_every_occurrence_of_a_table_counts(tables: Beside, query: str) -> None:
    uses = {use.name: use for use in tables.explain(query).tables}
    for name, (where, occurrences) in ASKED[query].items():
        assert parts_of(uses[name].where) == parts_of(where)
        assert uses[name].occurrences == occurrences


COLUMNS = {
    "SELECT id FROM t": ("id",),
    "SELECT g, id FROM t WHERE k = 3": ("id", "k", "g"),
    "SELECT count(*) FROM t": (),
    "SELECT count(*) FROM t WHERE upper(s) = 'A'": ("s",),
    "SELECT max(g) FROM t GROUP BY s": ("g", "s"),
    "SELECT a.id, b.k FROM t a JOIN t b ON a.g = b.f": ("id", "k", "f", "g"),
    "SELECT inner.x FROM t": ("inner",),
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": ("id", "k"),
    "SELECT id FROM t ORDER BY g": ("id", "g"),
}


@pytest.mark.parametrize("query", COLUMNS)
def test_columns_that_are_not_used_are_not_read(tables: Beside, query: str) -> None:
    use = tables.explain(query).tables[0]
    assert (use.name, use.columns) == ("t", COLUMNS[query])


TOP: dict[str, tuple[str, int | None]] = {
    "SELECT * FROM t ORDER BY g DESC LIMIT 3": ("g DESC NULLS LAST", 3),
    "SELECT id x FROM t WHERE k = 1 ORDER BY x, g DESC NULLS FIRST LIMIT 3": (
        "id ASC NULLS FIRST, g DESC NULLS FIRST",
        3,
    ),
    "SELECT s, id + 1 FROM t ORDER BY s NULLS LAST LIMIT 100000": ("s ASC NULLS LAST", 100_000),
    "SELECT k FROM (SELECT * FROM t ORDER BY id LIMIT 20) WHERE k = 3": ("id ASC NULLS FIRST", 20),
    "SELECT x.id FROM (SELECT id FROM t ORDER BY id LIMIT 4) x JOIN u ON x.id = u.id": (
        "id ASC NULLS FIRST",
        4,
    ),
    "SELECT * FROM t ORDER BY g DESC LIMIT 100001": ("", None),
    "SELECT * FROM t ORDER BY g DESC LIMIT 3 OFFSET 1": ("", None),
    "SELECT * FROM t ORDER BY -g LIMIT 3": ("", None),
    "SELECT * FROM t ORDER BY inner LIMIT 3": ("", None),
    "SELECT * FROM t ORDER BY s COLLATE UTF8_LCASE LIMIT 3": ("", None),
    "SELECT * FROM t WHERE upper(s) = 'A' ORDER BY g LIMIT 3": ("", None),
    "SELECT k, count(*) FROM t GROUP BY k ORDER BY k LIMIT 3": ("", None),
    "SELECT DISTINCT k FROM t ORDER BY k LIMIT 3": ("", None),
    "SELECT * FROM t LIMIT 3": ("", None),
    "SELECT * FROM t SORT BY g LIMIT 3": ("", None),
    "SELECT t.* FROM t JOIN u ON t.id = u.id ORDER BY t.g LIMIT 3": ("", None),
    "SELECT * FROM (SELECT * FROM t ORDER BY g LIMIT 3) UNION ALL (SELECT * FROM t WHERE k = 1)": (
        "",
        None,
    ),
    "SELECT *, explode(tags) FROM t ORDER BY g LIMIT 3": ("", None),
}


@pytest.mark.parametrize("query", TOP)
def test_limit_over_a_sort_goes_to_the_only_occurrence(tables: Beside, query: str) -> None:
    use = tables.explain(query).tables[0]
    assert (use.name, use.order_by, use.limit) == ("t", *TOP[query])


def test_hundreds_of_legs_are_read(tables: Beside) -> None:
    legs = " OR ".join(f"(id = {number} AND k = {number % 7})" for number in range(100))
    (use,) = explain_sql(f"SELECT id FROM t WHERE {legs}", t=tables["t"]).tables
    assert use.where.count("id = ") == 100
    tables.check(f"SELECT id FROM t WHERE {legs}")


def test_explanation_is_text_and_json(tables: Beside) -> None:
    query = "SELECT id FROM t WHERE k = 3 AND upper(s) = 'A' AND id NOT IN (SELECT k FROM u)"
    explanation = tables.explain(f"{query} AND 1 = 1")
    text = str(explanation).splitlines()
    assert text[:3] == [
        f"{query} AND 1 = 1",
        f"t: {tables['t'].location}",
        "  a part of the filter is left to Spark",
    ]
    assert text[3].startswith("  Spark's filter: (")
    assert "(upper(s) = A)" in text[3]
    assert text[4] == "  columns: id, k, s"
    assert text[5].startswith("  where ")
    assert f"u: {tables['u'].location}" in text
    as_json = json.loads(explanation.to_json())
    assert as_json["query"] == f"{query} AND 1 = 1"
    assert [table["name"] for table in as_json["tables"]] == ["t", "u"]
    assert as_json["tables"][0]["explanation"]["stages"][0]["name"] == "partitions"
    nothing = str(tables.explain("SELECT id FROM t WHERE 1 = 0"))
    assert nothing.splitlines()[2] == "  no row: it does not occur in Spark's optimised plan"


# -- the current time --------------------------------------------------------------------------


def test_current_time_is_the_same_for_the_index_and_for_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A row written after the plan must neither be pruned and then needed, nor appear later."""
    rows = spark.sql(
        "SELECT id, timestamp_micros(unix_micros(now()) + id) AS ts FROM range(3000000)"
    )
    rows.selectExpr("id * 1000 AS id", "timestamp_micros(unix_micros(ts) + id * 999) AS ts").limit(
        60_000
    ).coalesce(1).write.parquet(str(tmp_path / "t"))
    table = parquet(tmp_path / "t", spark)
    query = "SELECT count(*) AS n, unix_micros(now()) AS now FROM t WHERE ts < now()"
    (use,) = explain_sql(query, t=table).tables
    assert use.where.startswith("ts < TIMESTAMP '")
    answer = sql(query, t=table)
    first, again = answer.collect(), answer.collect()
    assert first == again
    moments = table.scan(columns=["ts"]).to_arrow()["ts"].cast(pa.int64()).to_pylist()
    assert first[0]["n"] == sum(moment < first[0]["now"] for moment in moments)


TIMES = [
    "SELECT id FROM t WHERE ts < now() AND d <= current_date() AND k = 3",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k WHERE a.ts < now() AND b.id < 9 AND a.id < 9",
    "WITH x AS (SELECT * FROM t WHERE ts < now()) SELECT x.id FROM x LEFT JOIN u ON x.id = u.id",
    "SELECT id FROM t WHERE ts < now() UNION ALL SELECT id FROM u WHERE d < current_date()",
]


@pytest.mark.parametrize("query", TIMES)
def test_query_for_the_current_time_is_pruned(tables: Beside, query: str) -> None:
    use = tables.explain(query).tables[0]
    assert use.occurrences
    assert use.reason == ""
    assert tables.check(query) > 0


def test_current_time_next_to_a_table_in_a_subquery_means_every_row(tables: Beside) -> None:
    query = "SELECT id, (SELECT max(id) FROM u WHERE k = 1) FROM t WHERE ts < now() AND k = 3"
    reason = "the query asks for the current time, and has a table within a subquery"
    assert [use.reason for use in tables.explain(query).tables] == [reason] * 2
    assert tables.check(query) > 0


# -- the user's session ------------------------------------------------------------------------


def test_views_of_the_user_stay_as_they_are(spark: SparkSession, tables: Beside) -> None:
    spark.range(7).createOrReplaceTempView("mine")
    spark.sql("CACHE TABLE mine")
    before = sorted(table.name for table in spark.catalog.listTables())
    try:
        assert sql("SELECT count(*) FROM mine WHERE k = 3", mine=tables["t"]).first()[0] == 20
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            sql("SELECT nothing FROM mine", mine=tables["t"])
        assert spark.table("mine").count() == 7
        assert spark.catalog.isCached("mine")
        assert sorted(table.name for table in spark.catalog.listTables()) == before
    finally:
        spark.catalog.dropTempView("mine")


def test_name_of_a_table_is_gone_afterwards(spark: SparkSession, tables: Beside) -> None:
    answer = sql("SELECT id FROM nobody WHERE id = 5", nobody=tables["t"])
    assert not spark.catalog.tableExists("nobody")
    assert [row.id for row in answer.collect()] == [5]
    assert answer.sparkSession is spark
    answer.createOrReplaceTempView("answer")
    assert spark.sql("SELECT * FROM answer").count() == 1
    spark.catalog.dropTempView("answer")


def test_view_over_a_view_over_a_table(spark: SparkSession, tables: Beside) -> None:
    """A view is text: the name in it means the table while the query runs."""
    spark.sql("CREATE TEMP VIEW low AS SELECT * FROM t WHERE k < 4")
    spark.sql("CREATE TEMP VIEW lower AS SELECT id, k FROM low WHERE k < 3")
    try:
        query = "SELECT lower.id, u.k FROM lower JOIN u ON lower.id = u.id WHERE lower.k = 2"
        conditions = {use.name: use.where for use in tables.explain(query).tables}
        assert conditions == {"t": "k = 2 AND id IS NOT NULL", "u": "id IS NOT NULL"}
        assert tables.check(query) > 0
    finally:
        for name in ("lower", "low"):
            spark.catalog.dropTempView(name)


def test_functions_and_variables_of_the_session_are_known(
    spark: SparkSession, tables: Beside
) -> None:
    spark.sql("DECLARE OR REPLACE VARIABLE wanted INT = 3")
    spark.sql("CREATE TEMPORARY FUNCTION doubled(x INT) RETURNS INT RETURN x * 2")
    try:
        query = "SELECT id FROM t WHERE k = wanted AND doubled(k) = 6"
        (use,) = explain_sql(query, t=tables["t"]).tables
        assert (use.where, use.exact) == ("k = 3", True)
        assert tables.check(query) == 20
    finally:
        spark.sql("DROP TEMPORARY FUNCTION doubled")
        spark.sql("DROP TEMPORARY VARIABLE wanted")


def test_current_catalog_and_database_count(
    spark: SparkSession, tables: Beside, tmp_path: Path
) -> None:
    spark._jvm.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    catalog = {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": "jdbc:derby:memory:other;create=true",
        ".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }
    for key, value in catalog.items():
        spark.conf.set(f"spark.sql.catalog.other{key}", value)
    query = "SELECT current_catalog(), current_database() FROM t WHERE id = 3"
    try:
        for command, expected in {
            "SET CATALOG other": ("other", ""),
            "USE other.APP": ("other", "APP"),
            "SET CATALOG spark_catalog": ("spark_catalog", "default"),
        }.items():
            spark.sql(command)
            assert tables.ours(query).collect() == [expected]
    finally:
        spark.sql("SET CATALOG spark_catalog")
        for key in catalog:
            spark.conf.unset(f"spark.sql.catalog.other{key}")


def test_threads_on_one_session_do_not_meet(spark: SparkSession, tables: Beside) -> None:
    def ask(number: int) -> Any:
        table, query = tables["tu"[number % 2]], "SELECT count(*) FROM same WHERE id >= 20"
        return sql(query, same=table).first()[0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(8))) == [140, 40] * 4
    assert not spark.catalog.tableExists("same")


def test_any_name_will_do(spark: SparkSession, tables: Beside) -> None:
    t = tables["t"]
    for name in ("my table", "a.b", "`", "SELECT", "日本"):
        query = f"SELECT count(*) FROM `{name.replace('`', '``')}` WHERE k = 3"
        assert sql(query, **{name: t}).first()[0] == 20
    assert sql("SELECT count(*) FROM Mixed WHERE K = 3", mixed=t).first()[0] == 20
    with pytest.raises(
        OptionError, match=r"table a: Spark does not tell names apart by their case"
    ):
        sql("SELECT 1", a=t, A=t)
    with settings(spark, caseSensitive="true"):
        answer = sql("SELECT count(*) FROM a, A WHERE a.id = A.id", a=t, A=tables["u"])
        assert answer.first()[0] == 60


def test_columns_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    names = ["a.b", "m[x]", "my, name", "x#12", "`", "\x1f", "id"]
    pq.write_table(pa.table([[1, 2, 3]] * len(names), names=names), tmp_path / "a.parquet")
    table = parquet(tmp_path, spark)
    for name in names:
        quoted = f"`{name.replace('`', '``')}`"
        query = f"SELECT {quoted} FROM t WHERE {quoted} > 1 ORDER BY {quoted} DESC LIMIT 1"
        assert sql(query, t=table).collect() == [(3,)]
    (use,) = explain_sql(
        "SELECT `a.b` FROM t WHERE `m[x]` > 1 ORDER BY `my, name` LIMIT 1", t=table
    ).tables
    assert use.order_by == "`my, name` ASC NULLS FIRST"


# -- tables and sessions -----------------------------------------------------------------------


def test_table_that_was_opened_without_spark(tables: Beside) -> None:
    table = parquet(tables["t"].location)
    query = "SELECT id FROM t WHERE ts = TIMESTAMP '2025-11-02 01:30:00'"
    assert [row.id for row in sql(query, t=table).collect()] == [75]
    assert sql("SELECT ID FROM t WHERE K = 3", t=table).count() == 20
    assert sql("SELECT 1 AS one").collect() == [(1,)]


def test_tables_of_two_sessions_are_refused(other_session: SparkSession, tables: Beside) -> None:
    other = parquet(tables["u"].location, other_session)
    with pytest.raises(
        OptionError, match="tables t and u: are of two Spark sessions, expected one"
    ):
        sql("SELECT 1", t=tables["t"], u=other)


def test_not_a_table_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="t: found DataFrame, expected Table"):
        sql("SELECT 1", t=spark.range(1))
    with pytest.raises(UnsupportedError, match="query: found int, expected str"):
        sql(1)  # type: ignore[arg-type]


COMMANDS = [
    "CREATE TEMP VIEW v AS SELECT * FROM t",
    "CREATE TABLE v USING parquet AS SELECT * FROM t",
    "INSERT OVERWRITE DIRECTORY '/nowhere' USING parquet SELECT * FROM t",
    "WITH x AS (TABLE t) INSERT OVERWRITE DIRECTORY '/nowhere' USING parquet FROM x SELECT *",
    "CACHE TABLE v AS SELECT * FROM t",
    "EXECUTE IMMEDIATE 'CREATE TEMP VIEW v AS SELECT * FROM t'",
    "BEGIN SELECT * FROM t; END",
    "EXPLAIN SELECT * FROM t",
    "INSERT INTO t SELECT * FROM t",
    "DROP VIEW t",
    "SET spark.sql.ansi.enabled = false",
    "USE spark_catalog",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_refused_and_not_run(spark: SparkSession, tables: Beside, command: str) -> None:
    with pytest.raises(UnsupportedError, match=r"alcid\.sql answers queries, found the command"):
        sql(command, t=tables["t"])
    assert not spark.catalog.tableExists("v")
    assert spark.catalog.tableExists("t")
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_errors_of_a_query_are_those_of_spark(tables: Beside) -> None:
    from pyspark.errors import AnalysisException, ParseException

    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        tables.ours("SELECT * FORM t")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        tables.ours("SELECT * FROM nowhere")


def test_part_of_a_plan_that_is_not_known_means_every_row(
    tables: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT k, count(*) FROM t WHERE id < 9 GROUP BY k"
    with monkeypatch.context() as patch:
        patch.setattr("alcid.spark.pushdown._KNOWN", {"Project", "Filter", "LogicalRDD"})
        (use,) = explain_sql(query, t=tables["t"]).tables
        assert tables.check(query) == 7
    assert use.reason == "the plan has a Aggregate, which is not known"
    assert (use.where, use.occurrences, use.columns) == ("TRUE", None, EVERY)


class Connected:
    """A session that hides its JVM, as Spark Connect does."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        if name == "_jsparkSession":
            raise AttributeError(name)
        return getattr(self._spark, name)


def test_without_a_jvm_every_row_is_read(spark: SparkSession, tables: Beside) -> None:
    connected: Any = Connected(spark)
    table = parquet(tables["t"].location, connected)
    query = "SELECT id FROM connected WHERE k = 3 AND id < 50"
    (use,) = explain_sql(query, connected=table).tables
    assert (use.where, use.reason) == ("TRUE", "Spark Connect does not show its plan")
    rows = sorted(shown(sql(query, connected=table)))
    assert rows == sorted(shown(tables.plain("SELECT id FROM t WHERE k = 3 AND id < 50")))
    assert not spark.catalog.dropTempView("connected")


def test_without_a_jvm_views_of_the_session_stay(spark: SparkSession, tables: Beside) -> None:
    from pyspark.errors import ParseException

    connected: Any = Connected(spark)
    table = parquet(tables["t"].location, connected)
    spark.range(3).createOrReplaceTempView("mine")
    spark.range(7).createOrReplaceTempView("other")
    try:
        query = """
            WITH few AS (SELECT id FROM mine WHERE id < 5)  -- of the table, not of the view
            SELECT count(*), '{}' AS braces FROM few JOIN other USING (id);
        """
        assert [tuple(row) for row in sql(query, mine=table).collect()] == [(5, "{}")]
        assert spark.table("mine").count() == 3
        ordered = sql("SELECT id FROM mine ORDER BY id DESC LIMIT 2", mine=table)
        assert shown(ordered) == shown(tables.plain("SELECT id FROM t ORDER BY id DESC LIMIT 2"))
        with pytest.raises(ParseException):
            sql("CREATE TEMPORARY VIEW made AS SELECT * FROM mine", mine=table)
        assert not spark.catalog.dropTempView("made")
    finally:
        spark.catalog.dropTempView("mine")
        spark.catalog.dropTempView("other")


def test_side_session_shows_no_rows_to_the_optimiser(spark: SparkSession) -> None:
    """If it were known that there are none, no table would be asked anything."""
    from alcid.spark.schema import spark_schema

    side = SideSession(spark)
    side.call("x", side.empty(spark_schema(SCHEMA)))
    plan = side.plan("SELECT * FROM x WHERE id = 1").optimized
    assert [plan.kind, plan.children[0].kind] == ["Filter", "LogicalRDD"]


def test_a_query_goes_by_the_session_of_its_tables_though_another_is_active(
    spark: SparkSession, other_session: SparkSession, tmp_path: Path
) -> None:
    hours = [datetime.datetime(2024, 3, 10, hour, tzinfo=datetime.UTC) for hour in range(24)]
    pq.write_table(
        pa.table({"id": range(24), "ts": pa.array(hours, pa.timestamp("us", "UTC"))}),
        tmp_path / "a.parquet",
    )
    other_session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    table = parquet(tmp_path, other_session)
    spark.createDataFrame([(1,)], "x INT")  # makes it the active one
    rows = sql(
        "SELECT id, current_timezone() AS zone FROM t WHERE ts = TIMESTAMP'2024-03-10 12:00:00'",
        t=table,
    )
    assert [tuple(row) for row in rows.collect()] == [(3, "Asia/Tokyo")]
    spark.createDataFrame([(1,)], "x INT")
    rows = sql("SELECT id FROM t WHERE ts = TIMESTAMP'2024-03-10 12:00:00'", t=table)
    assert [tuple(row) for row in rows.collect()] == [(3,)]
    spark.createDataFrame([(1,)], "x INT")
    where = "ts = TIMESTAMP'2024-03-10 12:00:00' AND abs(id) < 24"
    assert [row["id"] for row in table.read(where).collect()] == [3]
    assert table.read("id = 3").sparkSession is other_session
