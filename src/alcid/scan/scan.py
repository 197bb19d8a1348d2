"""`Scan`: a query on a table, planned when its rows, count or explanation are first needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, TypeVar

import pyarrow as pa

from alcid._arrays import BoolArray
from alcid.config import current_settings
from alcid.datafiles.parquet.decoding import rows_without_columns
from alcid.errors import (
    ColumnError,
    DamagedIndexWarning,
    EvaluationError,
    FileGoneError,
    PredicateError,
    SparkNeededError,
)
from alcid.expressions import (
    Constant,
    Predicate,
    known_part,
    normalize,
    parse,
)
from alcid.scan.access import table_schema
from alcid.scan.execution import (
    Run,
    ScanEngine,
    ScanPlan,
    TooManyBytesError,
    small_bytes,
)
from alcid.scan.explain import Explanation
from alcid.scan.leaves import TablePredicate
from alcid.scan.sorting import SortKey, parse_order
from alcid.scan.table_files import DataFiles, TableFiles

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Query:
    """A query on one table: predicate, columns, order and limit."""

    where: str | Predicate | None = None
    columns: Sequence[str] | None = None
    order_by: str | Sequence[str] | None = None
    limit: int | None = None
    use_indexes: bool = True


class Scan:
    """A lazy query on a table, as `Table.scan` returns it: nothing is read before rows are needed.

    A scan sees the files that its table had when the scan was made. If one of them is gone, or the
    time zone or the case rule has changed, it is planned again on the files of that moment.
    """

    def __init__(
        self,
        query: Query,
        files: TableFiles,
        reopen: Callable[[], TableFiles],
        engine: ScanEngine,
        *,
        strict: bool,
    ) -> None:
        """Prepare a query on files; `reopen` lists them again, `engine` reads them for Spark.

        Raises:
            PredicateError: Predicate, order or limit cannot be read.
            SparkNeededError: The predicate has a part that only Spark can evaluate, and there is
                no session.
            ColumnError: There is no such column.
            LiteralError: A literal has no meaning for the type of its column.
        """
        self.query, self._reopen, self._engine, self._strict = query, reopen, engine, strict
        if isinstance(query.columns, str):
            raise ColumnError(
                f"columns: found the text {query.columns!r}, expected a list of names"
            )
        if query.limit is not None and not (_is_integer(query.limit) and query.limit >= 0):
            raise PredicateError(f"limit: found {query.limit!r}, expected a number, 0 or more")
        self._order = parse_order(query.order_by) if query.order_by is not None else ()
        with engine.settings():
            predicate = Constant(True) if query.where is None else parse(query.where)
            self._where = normalize(predicate)
            # Also those that normalizing removed: Spark resolves them all the same.
            self._named_columns = predicate.columns()
            self._use(files)

    def _use(self, files: TableFiles) -> None:
        """Bind the query to these files."""
        self._files, self._settings = files, current_settings()
        self._distrusted = set(files.replaced)  # as it was opened
        columns = files.columns
        chosen = list(columns.columns) if self.query.columns is None else self.query.columns
        self._columns = [columns.find_whole(name) for name in chosen]
        self.keys = [
            SortKey(columns.find_whole(key.column), key.descending, key.nulls_first)
            for key in self._order
        ]
        self._where_columns = list(
            dict.fromkeys(map(columns.find, _top_level_names(self._named_columns, files)))
        )
        self._bound = TablePredicate(self._where, files, self._where_columns)
        try:
            _ = self._bound.row_filter  # raises what is wrong with the predicate
            self._needs_spark = False
        except SparkNeededError as error:  # now, and not when a row happens to depend on it
            if not self._engine.has_spark:
                raise _without_spark(error) from None
            self._needs_spark = True
        self._run: Run | None = None
        self._evaluable: Scan | None = None  # without the parts that only Spark can evaluate

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return table_schema(self._files, self._columns)

    def needed(self, *, rows: bool = True) -> list[str]:
        """The columns of the table that are read for rows, or to count them."""
        output = [*self._columns, *(key.column for key in self.keys)] if rows else []
        return list(dict.fromkeys([*self._where_columns, *output]))

    def to_arrow(self) -> pa.Table:
        """The rows.

        Raises:
            EvaluationError: A row overflows, divides by zero or cannot be cast, under ANSI rules.
            FileGoneError: A file of the table is gone, and was so again when it was planned anew.
        """
        try:
            rows = None if self._needs_spark else self._read()
            if rows is not None:
                return rows
        except EvaluationError:
            if not self._engine.has_spark:
                raise
        if not self._columns:
            return rows_without_columns(self.count())
        return self.to_spark().toArrow().cast(self.schema)

    def _read(self) -> pa.Table | None:
        """The rows, read in this process; None if tasks are to read them.

        With a limit that is so where more bytes have to be read than this process should.
        """
        if self.query.limit is not None and self._engine.has_spark:
            return self.first_rows()
        is_planned = self._run is not None and self._run.is_untouched
        return self._call(lambda run: run.rows(), keep=is_planned)

    def first_rows(self) -> pa.Table | None:
        """The rows of a scan with a limit; None if this process would have to read too much."""
        is_planned = self._run is not None and self._run.is_untouched
        if self._call(lambda run: run.has_pending_deletes, keep=is_planned):
            return None
        most = small_bytes(remote=self._files.remote)
        try:
            return self._call(lambda run: run.rows(most), keep=True)
        except TooManyBytesError:
            return None

    def to_spark(self) -> Any:
        """The rows as a DataFrame of Spark; the table must have been opened with a session.

        The scan is planned now. The read strategy is chosen by what is left to be read; `explain`
        says which it is, and why.

        Raises:
            UnsupportedError: There is no session.
        """
        with self._engine.settings():  # in which tasks are to read, too
            self._follow_settings()
            return self._engine.to_spark(self)

    def count(self) -> int:
        """How many rows there are; from the indexes alone where they are exact."""
        try:
            if not self._needs_spark:
                return self._call(lambda run: run.count())
        except EvaluationError:
            if not self._engine.has_spark:
                raise
        return int(self.to_spark().count())

    def explain(self) -> Explanation:
        """What is read and why; after `to_arrow` or `count`, what was read."""
        explanation = self._call(lambda run: run.explain(), keep=True)
        files = self._files
        notes = [*files.notes, *files.remarks, *filter(None, [self._engine.note(self)])]
        return replace(explanation, notes=(*explanation.notes, *notes)) if notes else explanation

    def plan(self, *, in_process: bool = False) -> tuple[ScanPlan, bool]:
        """The rows that may match, planned but not read, and whether all of them do match.

        They do not if the predicate has parts that are left to Spark; then the plan has all
        columns, so that Spark can evaluate them. Order and limit are left to the caller.

        Args:
            in_process: Leave to Spark only what nothing else can evaluate. Without it, that is
                everything that no index answers.
        """
        evaluable = known_part(self._where)
        if evaluable == self._where or (in_process and not self._needs_spark):
            return self._call(lambda run: run.plan(), keep=True), True
        if self._evaluable is None:
            whole = replace(self.query, where=evaluable, columns=None)
            self._evaluable = Scan(
                whole, self._files, self._reopen, self._engine, strict=self._strict
            )
        return self._evaluable.plan()[0], False

    def __repr__(self) -> str:
        return f"<Scan where {self._where}>"

    def _call(self, call: Callable[[Run], _Result], *, keep: bool = False) -> _Result:
        """The result of a call, with the settings of the engine; warns of damaged indexes."""
        with self._engine.settings():
            self._follow_settings()
            result = self._retry_if_gone(call, keep)
        for text in self._current_run(keep=True).new_warnings():
            warnings.warn(text, DamagedIndexWarning, stacklevel=3)
        return result

    def _retry_if_gone(self, call: Callable[[Run], _Result], keep: bool) -> _Result:
        """The result of a call; if a file is gone, of another one on the files that are left.

        Files that turn out not to be the ones indexed do not count: each is met only once.
        """
        is_again = False
        while True:
            try:
                return call(self._current_run(keep))
            except FileGoneError:
                if is_again and not self._files.replaced - self._distrusted:
                    raise
                is_again = True
                self._use(self._reopen())

    def _follow_settings(self) -> None:
        """Bind again if literals and partition values mean something else by now."""
        if self._settings != current_settings():
            self._use(self._reopen())

    def _current_run(self, keep: bool) -> Run:
        """A new run, or the last one, to keep what it found out."""
        if self._run is None or not keep:
            limit = None if self.query.limit is None else int(self.query.limit)
            self._run = Run(
                self._files,
                self._bound,
                self._columns,
                self.keys,
                limit,
                self.query.use_indexes,
                self._strict,
                self._engine,
            )
        return self._run


def left_by_statistics(where: str | Predicate, files: DataFiles) -> BoolArray:
    """The files that a predicate leaves, by partition values and statistics.

    Raises:
        PredicateError: The predicate cannot be read.
        ColumnError: There is no such column.
        LiteralError: A literal has no meaning for the type of its column.
    """
    predicate = normalize(parse(where))
    names = _top_level_names(predicate.columns(), files)
    columns = list(dict.fromkeys(map(files.columns.find, names)))
    return TablePredicate(predicate, files, columns).by_statistics().may_match


def _without_spark(error: SparkNeededError) -> SparkNeededError:
    return SparkNeededError(f"{error}; a table opened with a session can (spark=, --spark)")


def _is_integer(limit: object) -> bool:
    try:
        index(limit)  # type: ignore[arg-type]  # which is the question
    except TypeError:
        return False
    return True


def _top_level_names(named: Iterable[str], files: DataFiles) -> Iterator[str]:
    """The columns that a predicate names; fields within a column stand for the whole of it."""
    columns = files.columns
    for name in named:
        outer = name.partition(".")[0]
        yield outer if not columns.has(name) and columns.has(outer) else name
