"""What every table has, whatever its kind: rows that are asked for."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from alcid.errors import AlcidWarning
from alcid.options import Settings, current_settings
from alcid.plan import Explanation, Query, Scan, TableFiles, table_schema
from alcid.predicate import Predicate
from alcid.storage import Storage
from alcid.tables.engine import Engine, Threads

__all__ = ["Table"]

Files = TypeVar("Files", bound=TableFiles)


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
        files = self.snapshot
        if files.notes and not self._has_warned:
            self._has_warned = True
            for note in files.notes:
                warnings.warn(f"{self.location}: {note}", AlcidWarning, stacklevel=2)
        return self._chosen(Scan(query, files, self._reopen, self.engine, strict=self._strict))

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

    def _reopen(self) -> Files:
        self.refresh()
        return self.snapshot

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}>"
