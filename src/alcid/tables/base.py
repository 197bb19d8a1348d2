"""`Table`: what every table has, whatever its kind.

`find_rows` finds the rows that match a predicate, by file and position, as deletes need them. It
reads the columns of the predicate only, and no file whose partition values alone say that all of
its rows match.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from alcid.config import Settings, current_settings
from alcid.errors import AlcidWarning, FileGoneError, PredicateError, SparkNeededError
from alcid.expressions import Predicate
from alcid.formats.deletion_vector import DeletionVector
from alcid.scan import Explanation, Query, ReadPlan, Scan, ScanPlan, TableFiles, table_schema
from alcid.storage import Storage, retry
from alcid.tables.engine import Engine, Task, Threads
from alcid.tables.progress import Progress, ReportProgress, no_progress, track_progress

if TYPE_CHECKING:
    from alcid.advise import Advice, QueryInput
    from alcid.tables.reports import IndexInfo

Files = TypeVar("Files", bound=TableFiles)

_NO_ROWS = DeletionVector()


class Table(ABC, Generic[Files]):
    """Data files that belong together.

    It sees the files that there were when it was opened, or at the last `refresh`.
    """

    def __init__(self, storage: Storage, *, strict: bool, engine: Engine | None) -> None:
        """Nothing is read yet; whoever inherits calls `refresh`."""
        self.storage, self._strict = storage, strict
        self.engine: Engine = engine or Threads()
        """What does the work on many files: this process, or Spark."""
        self._settings: Settings
        self._snapshot: Files
        self._has_warned = False
        self._distrusted: set[str] = set()
        """Files that are not those that were indexed, though size and version are the same."""

    @abstractmethod
    def _open(self, before: Files | None = None) -> Files:
        """The files that there are; or, if they are given, the same ones anew."""

    @property
    def snapshot(self) -> Files:
        """The files as they were listed.

        Timestamps in the paths go by the time zone, and names by the case rule: where one of them
        has changed since, the same files are opened again.
        """
        with self.engine.settings():
            if self._settings != current_settings():
                self._snapshot = self._open(self._snapshot)
                self._settings = current_settings()
        return self._snapshot

    @property
    def location(self) -> str:
        """Where it is."""
        return self.storage.location

    @property
    def schema(self) -> pa.Schema:
        """All columns; every one may be null."""
        return table_schema(self.snapshot, list(self.snapshot.columns.columns))

    @property
    def files(self) -> int:
        """How many data files there are."""
        return len(self.snapshot.sizes)

    def refresh(self) -> None:
        """See what there is now."""
        with self.engine.settings():
            self._snapshot = self._open()
            self._settings = current_settings()

    def scan(
        self,
        where: str | Predicate | None = None,
        *,
        columns: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        use_indexes: bool = True,
    ) -> Scan:
        """Ask for rows: nothing is read before `to_arrow`, `count` or `explain`.

        Args:
            where: SQL text, or a predicate made with `alcid.col`; by default every row.
            columns: The columns to give, in this order; by default all.
            order_by: As `"score DESC NULLS LAST, id"`; without, rows come by path and position.
            limit: How many rows at most.
            use_indexes: False to read without indexes and statistics, for comparison.
        """
        query = Query(where, columns, order_by, limit, use_indexes)
        files = self._files_of(query)
        if files.notes and not self._has_warned:
            self._has_warned = True
            for note in files.notes:
                warnings.warn(f"{self.location}: {note}", AlcidWarning, stacklevel=2)
        return self._chosen(Scan(query, files, self._reopen, self.engine, strict=self._strict))

    def _files_of(self, _query: Query, /) -> Files:
        """The files for a query: all of them, or those that metadata alone cannot rule out."""
        return self.snapshot

    def _chosen(self, scan: Scan) -> Scan:
        """The scan itself, or one that reads the same rows in another way."""
        return scan

    def read(self, where: str | Predicate | None = None, **query: Any) -> Any:
        """The rows as a DataFrame of Spark; the arguments are those of `scan`.

        Raises:
            UnsupportedError: The table was not opened with a session.
        """
        return self.scan(where, **query).to_spark()

    def count(self, where: str | Predicate | None = None) -> int:
        """How many rows match."""
        return self.scan(where).count()

    def explain(self, where: str | Predicate | None = None, **query: Any) -> Explanation:
        """What a scan would read, and why; the arguments are those of `scan`."""
        return self.scan(where, **query).explain()

    def advise(
        self,
        queries: Iterable[QueryInput] = (),
        *,
        columns: Collection[str] | None = None,
        sample: int = 16,
        progress: Progress | bool | None = None,
    ) -> Advice:
        """Say for each column which index pays, by a sample of the files; nothing is written.

        A few files are read, and indexes of them are built in memory, with which the queries are
        planned. Deleted rows count as rows of their files, as they do in indexes.

        Args:
            queries: What is asked of the table: SQL texts as behind WHERE, with ORDER BY and LIMIT
                if they have them; predicates; or dicts with `where`, `columns`, `order_by`,
                `limit`, and `count` if rows are only counted.
                Without, each column is judged by queries that are typical of its values.
            columns: Only these, which may be keys of maps; by default all that queries name.
            sample: How many files are read at most; two at least. Some more are where a query would
                find nothing in those.
            progress: Is called after each file with files done, files to do, and rows. True shows a
                bar, False nothing; by default there is a bar if standard error is a terminal.

        Raises:
            ColumnError: There is no such column.
            PredicateError: A query cannot be read.
            UnsupportedError: Files of the table cannot be read here.
        """
        from alcid.tables.advise import advise

        is_one = isinstance(queries, str | Mapping | Predicate | Query)  # which is refused
        given = queries if is_one else tuple(queries)
        with self.engine.settings():
            return retry(
                lambda: advise(
                    self.snapshot,
                    self.engine,
                    given,
                    columns=columns,
                    sample=sample,
                    progress=progress,
                ),
                on=FileGoneError,  # or replaced, since it was listed
                attempts=2,
                before_retry=self.refresh,
            )

    def _reopen(self) -> Files:
        self.refresh()
        return self.snapshot

    @abstractmethod
    def indexes(self) -> list[IndexInfo]:
        """What indexes there are, and how many files have each."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}>"


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """Live rows that match."""

    files: TableFiles
    """The table as it was looked at."""
    rows: dict[int, DeletionVector]
    """Their positions, by the number of the file, ascending; only files with such rows."""


def find_rows(
    table: Table[Any], where: str | Predicate, *, progress: Progress | bool | None = False
) -> FoundRows:
    """The live rows that match, as the table was when it was last refreshed.

    Args:
        table: The table.
        where: What they match.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        PredicateError: The predicate cannot be read, or has a part that only Spark can evaluate.
        FileGoneError: Others have removed a file.
    """
    plan = _plan_rows(table, where)
    is_certain = plan.files.columns.partitions.keys() >= set(plan.where_columns)
    # Else rows are looked at before they are deleted: an index, or bounds, may be wrong unnoticed.
    matching = dict(_known(plan)) if is_certain else {}
    undecided = ~(plan.candidates.exact & is_certain)
    rest = replace(plan, candidates=plan.candidates.filter(undecided))
    engine = Threads() if rest.is_small else table.engine
    shown = progress if len(rest) else False
    with table.engine.settings(), track_progress(shown, "looking for rows", len(rest)) as report:
        matching |= find_matching(rest, engine, report)
    return FoundRows(
        plan.table, {file: matching[file] for file in sorted(matching) if matching[file]}
    )


def find_matching(
    plan: ScanPlan, engine: Engine, report: ReportProgress = no_progress
) -> dict[int, DeletionVector]:
    """The positions of the rows that match, by file, found by the tasks of an engine."""
    if not len(plan):
        return {}
    matching: dict[int, DeletionVector] = {}
    for part in engine.map(find_in_task, plan.read_plan(), plan.sizes, report):
        for file, rows in part.items():
            matching[file] = matching[file] | rows if file in matching else rows
    return matching


def _plan_rows(table: Table[Any], where: str | Predicate) -> ScanPlan:
    try:
        plan, is_whole = table.scan(where, columns=[]).plan(in_process=True)
        if is_whole:
            return plan
    except SparkNeededError:
        pass
    raise PredicateError(
        f"{where}: has a part that only Spark can evaluate, which deletes do not ask"
    )


def _known(plan: ScanPlan) -> Iterator[tuple[int, DeletionVector]]:
    """The rows of files that need not be read."""
    for file, selection in plan.candidates.filter(plan.candidates.exact).items():
        rows = range(plan.files.rows[file]) if selection.rows is None else selection.rows
        yield file, DeletionVector(rows)


def find_in_task(task: Task[ReadPlan]) -> dict[int, DeletionVector]:
    """The positions of the rows that match, by the file's number in the table."""
    vectors: dict[int, DeletionVector] = {}
    plan = task.items
    for items, parts in plan.read_items():
        rows = 0
        for part in parts:
            files, positions = part.rows.files, part.rows.positions
            for file in np.unique(files).tolist():
                number = file if plan.numbers is None else int(plan.numbers[file])
                matching = DeletionVector(positions[files == file])
                vectors[number] = vectors.get(number, _NO_ROWS) | matching
            rows += len(files)
        task.report(items, rows)
    return vectors
