"""Spark's plan of a query, as the nodes in the driver's JVM show it.

The query is planned in a session beside the user's own, in which tables have their names. As few
calls as possible are made: each goes over a socket, and takes a tenth of a millisecond.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from alcid.errors import UnsupportedError
from alcid.spark.jvm import active, has_jvm
from alcid.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OWN = "org.apache.spark.sql."
_SEPARATOR = "\x1f"
_ATTRIBUTE = re.compile(r"#(\d+)L?")


class Node:
    """A node of a plan."""

    def __init__(self, java: Any) -> None:
        """Wrap it; nothing is asked before it is needed."""
        self.java = java

    @cached_property
    def kind(self) -> str:
        """Its class, without the package if that is Spark's own."""
        name = str(self.java.getClass().getName())
        return name.rpartition(".")[2] if name.startswith(_OWN) else name

    @cached_property
    def children(self) -> list[Node]:
        """The nodes below."""
        return [Node(child) for child in listed(self.java.children())]

    @cached_property
    def subqueries(self) -> list[Node]:
        """The plans within its expressions."""
        return [Node(plan) for plan in listed(self.java.subqueries())]

    @cached_property
    def relation(self) -> int | None:
        """The id of a table that `SideSession.empty` may have made; None of any other node."""
        return int(self.java.rdd().id()) if self.kind == "LogicalRDD" else None

    def has_relation_in_subquery(self, relations: Collection[int]) -> bool:
        """Whether one of these tables occurs in a plan within an expression."""
        waiting = [(self, False)]
        while waiting:
            node, is_inside = waiting.pop()
            if is_inside and node.relation in relations:
                return True
            waiting += [(child, is_inside) for child in node.children]
            waiting += [(plan, True) for plan in node.subqueries]
        return False

    def attributes(self, names: Sequence[str]) -> dict[int, str] | None:
        """The columns of a leaf by their ids; None where they are not those of these names."""
        text, position, columns = str(self.java.output().mkString(_SEPARATOR)), 0, dict[int, str]()
        for name in names:
            is_next = text.startswith(f"{name}#", position)
            number = _ATTRIBUTE.match(text, position + len(name)) if is_next else None
            if number is None:
                return None
            columns[int(number[1])] = name
            position = number.end() + len(_SEPARATOR)
        return columns if position == len(text) + len(_SEPARATOR) else None

    def references(self) -> set[int] | None:
        """The ids of all columns in its expressions; None where they cannot be told."""
        text = str(self.java.references().toSeq().mkString(_SEPARATOR))
        ends = [re.search(r"#(\d+)L?$", part) for part in text.split(_SEPARATOR) if part]
        return None if None in ends else {int(end[1]) for end in ends if end is not None}

    def condition(self) -> Condition:
        """That of a Filter."""
        return Condition(self.java.condition())

    def projected(self) -> list[Condition]:
        """The expressions of a Project."""
        return [Condition(expression) for expression in listed(self.java.projectList())]

    def order(self) -> list[Condition]:
        """The keys of a Sort."""
        return [Condition(key) for key in listed(self.java.order())]

    @property
    def is_global(self) -> bool:
        """Whether a Sort is of all rows, and not of each partition, as SORT BY is."""
        return bool(getattr(self.java, "global")())

    def limit(self) -> Condition:
        """How many rows a limit leaves."""
        return Condition(self.java.limitExpr())


class Condition:
    """An expression: its nodes, each before those below it."""

    def __init__(self, java: Any) -> None:
        """Take all of it in one call."""
        self._java = java
        self.nodes: list[dict[str, Any]] = json.loads(java.toJSON())

    def __str__(self) -> str:
        return re.sub(r"#\d+L?\b", "", str(self._java.toString()))

    def at(self, path: Sequence[int]) -> Any:
        """A node itself, by the places of the children that lead to it."""
        node = self._java
        for child in path:
            node = node.children().apply(child)
        return node


def listed(items: Any) -> list[Any]:
    """A sequence of Scala's as a list."""
    return [items.apply(position) for position in range(items.size())]


# The first two would run while a plan is made, on tables without rows; the third has no plan.
_COMMANDS = ("CompoundBody", "UnresolvedExecuteImmediate", "InsertIntoStatement")


def same_session(session: SparkSession, other: SparkSession) -> bool:
    """Whether two are the same session, though each may be an object of its own."""
    if session is other:
        return True
    if not (has_jvm(session) and has_jvm(other)):
        return False
    return bool(session._jsparkSession.equals(other._jsparkSession))


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query as the optimiser leaves it, and as it was before."""

    optimized: Node
    analyzed: Node
    has_time: bool
    """It asked for the current time, which both have as a literal now."""


class SideSession:
    """A session with the settings, views, functions and variables of another.

    Names that are given here are not seen there, so that no view of the user is ever replaced, and
    threads do not meet.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Copy a session, which takes a millisecond."""
        self._spark, self._own, self._java = spark, spark._jsparkSession, _Java.of(spark._jvm)
        self._session = self._own.cloneSession()
        self._state = self._session.sessionState()
        mine, its = self._state.catalogManager(), self._own.sessionState().catalogManager()
        if its.currentCatalog().name() != mine.currentCatalog().name():
            mine.setCurrentCatalog(its.currentCatalog().name())
            if list(its.currentNamespace()) != list(mine.currentNamespace()):
                mine.setCurrentNamespace(its.currentNamespace())
        if not its.tempVariableManager().isEmpty():
            variables = its.tempVariableManager().getClass().getDeclaredField("variables")
            variables.setAccessible(True)
            copied = variables.get(its.tempVariableManager())
            variables.get(mine.tempVariableManager()).addAll(copied)

    def empty(self, schema: StructType) -> DataFrame:
        """A table without rows, of which the optimiser does not know that it has none."""
        from pyspark.sql import DataFrame

        types = self._java.read_type(schema.json())
        nothing = self._spark.sparkContext._jsc.emptyRDD().rdd()
        return DataFrame(self._own.internalCreateDataFrame(nothing, types, False), self._spark)

    def relation_of(self, empty: DataFrame) -> int:
        """The id by which its leaves in a plan are known."""
        return Node(empty._jdf.queryExecution().analyzed()).relation or 0

    def call(self, name: str, rows: DataFrame) -> None:
        """Give a table a name.

        What had it before is dropped first: Spark would take its rows out of the cache, also where
        it is the user's own view that is cached.
        """
        self._state.catalog().dropTempView(name)
        view = self._java.rows_of(self._session, rows._jdf.queryExecution().analyzed())
        view.createOrReplaceTempView(quoted(name))

    def plan(self, query: str) -> Planned:
        """What becomes of a query; nothing is run.

        Raises:
            UnsupportedError: It is a command.
        """
        with active(self._spark, self._session):
            return self._plan(query)

    def _plan(self, query: str) -> Planned:
        parsed = self._state.sqlParser().parsePlan(query)
        kind = Node(parsed).kind
        if kind in _COMMANDS:
            raise _not_a_query(kind)
        analyzed = self._execute(parsed).analyzed()
        has_time = bool(analyzed.containsPattern(self._java.current_time))
        if has_time:
            analyzed = self._java.set_time(analyzed)
        if analyzed.containsPattern(self._java.command):
            raise _not_a_query(kind)
        optimized = self._execute(analyzed).optimizedPlan()
        return Planned(Node(optimized), Node(analyzed), has_time)

    def run(self, query: str) -> DataFrame:
        """The rows of a query on the tables that have a name here, in the user's own session."""
        with active(self._spark, self._session):
            parsed = self._state.sqlParser().parsePlan(query)
            return self._result(self._execute(parsed).analyzed())

    def run_with(self, planned: Planned, tables: Mapping[int, DataFrame]) -> DataFrame:
        """The rows of a planned query, with other tables in place of its empty ones.

        Its time of day is that of the plan. Tables within subqueries are not replaced.
        """
        return self._result(self._replaced(planned.analyzed, tables))

    def _replaced(self, node: Node, tables: Mapping[int, DataFrame]) -> Any:
        table = None if node.relation is None else tables.get(node.relation)
        if table is not None:
            return self._renumbered(node, table)
        children = [self._replaced(child, tables) for child in node.children]
        if all(new is old.java for new, old in zip(children, node.children, strict=True)):
            return node.java
        return node.java.withNewChildren(self._seq(children))

    def _renumbered(self, leaf: Node, rows: DataFrame) -> Any:
        """A table whose columns have the ids by which the plan above a leaf knows them."""
        analyzed, java = rows._jdf.queryExecution().analyzed(), self._java
        none, nothing = java.none(), self._seq([])
        pairs = zip(listed(analyzed.output()), listed(leaf.java.output()), strict=True)
        columns = [
            java.alias(new, old.name(), old.exprId(), nothing, none, nothing) for new, old in pairs
        ]
        return java.project(self._seq(columns), analyzed)

    def _execute(self, plan: Any) -> Any:
        return self._state.executePlan(plan, self._java.skip_commands)

    def _result(self, analyzed: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(self._java.rows_of(self._own, analyzed), self._spark)

    def _seq(self, items: Sequence[Any]) -> Any:
        listed = self._java.new_list()
        for item in items:
            listed.add(item)
        return self._java.to_seq(listed)


class _Java:
    """Classes and methods of Spark: each step to one, from package to package, is a call."""

    def __init__(self, jvm: Any) -> None:
        sql = jvm.org.apache.spark.sql
        catalyst = sql.catalyst
        self.rows_of = sql.classic.Dataset.ofRows
        self.read_type = sql.types.DataType.fromJson
        self.skip_commands = sql.execution.CommandExecutionMode.SKIP()
        self.command = catalyst.trees.TreePattern.COMMAND()
        self.current_time = catalyst.trees.TreePattern.CURRENT_LIKE()
        self.set_time = catalyst.optimizer.ComputeCurrentTime.apply
        self.alias, self.project = catalyst.expressions.Alias, catalyst.plans.logical.Project
        self.none, self.new_list = jvm.scala.Option.empty, jvm.java.util.ArrayList
        self.to_seq = jvm.PythonUtils.toSeq

    @staticmethod
    @lru_cache(maxsize=1)
    def of(jvm: Any) -> _Java:
        """Those of a JVM, looked up once."""
        return _Java(jvm)


def _not_a_query(kind: str) -> UnsupportedError:
    return UnsupportedError(
        f"alcid.sql answers queries, found the command {kind}: spark.sql runs commands, and "
        "alcid.sql(...).write writes the rows of a query"
    )
