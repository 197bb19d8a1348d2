"""Where work on many files is done: in this process, or on Spark.

Work is given in shares. One worker does a share from its first item to its last, publishes what it
makes under names of its own, and returns what is to be known of it. So a worker that is killed and
one that does a share for the second time do no harm: only what is returned counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from alcid.errors import UnsupportedError
from alcid.plan import Draft, Scan, ScanEngine

if TYPE_CHECKING:
    from alcid.tables.append_report import AppendReport
    from alcid.tables.paimon.keyed.upsert_report import UpsertReport
    from alcid.tables.paimon.keyed.upserting import UpsertPlan
    from alcid.tables.paimon.table import PaimonTable
    from alcid.tables.parquet_folder import ParquetTable

__all__ = ["Engine", "Share", "Tell", "Threads", "Work"]

R = TypeVar("R")

Integers = npt.NDArray[np.int64]

Tell: TypeAlias = Callable[[int, int], None]
"""Is told how many more files are done, and how many more rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What one worker does."""

    items: Integers
    """The places of its items, ascending."""
    threads: int
    """How many threads it may use."""


Work: TypeAlias = Callable[[Share, Tell], R]
"""It is pickled with all that it holds, and so is what it returns."""


class Engine(ScanEngine, Protocol):
    """What does the work on a table, and reads its rows."""

    def map(self, work: Work[R], sizes: Integers, tell: Tell) -> list[R]:
        """Do work on all items, and return what each share gave, in their order.

        Args:
            work: What to do with a share.
            sizes: The bytes of each item.
            tell: Is told how far it is.
        """

    def append(self, table: ParquetTable | PaimonTable, rows: Any, /, **how: Any) -> AppendReport:
        """Write the rows of a DataFrame as files of a table; see its own `append`."""

    def upsert(self, table: PaimonTable, rows: Any, plan: UpsertPlan, /) -> UpsertReport:
        """Let the rows of a DataFrame replace those of their keys; see `PaimonTable.upsert`."""

    def streaming_query(self, rows: Any, /) -> str | None:
        """The id of the streaming query that rows come from, the same as long as its checkpoint is.

        None if there is none, or it is not known.
        """


class Threads:
    """This process, with as many threads as there are cores."""

    has_spark = False

    def __init__(self, like: Engine | None = None) -> None:
        """Work with the settings of another engine; by default with those of `alcid.options`."""
        self._like = like

    def settings(self) -> AbstractContextManager[None]:
        """The time zone and the case rule."""
        return nullcontext() if self._like is None else self._like.settings()

    def map(self, work: Work[R], sizes: Integers, tell: Tell) -> list[R]:
        """Do all in one share."""
        return [work(Share(np.arange(len(sizes)), os.cpu_count() or 1), tell)]

    def to_spark(self, scan: Scan) -> Any:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise _no_spark(scan)

    def append(self, table: ParquetTable | PaimonTable, _rows: Any, /, **_how: Any) -> AppendReport:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise _no_spark(table)

    def upsert(self, table: PaimonTable, _rows: Any, _plan: UpsertPlan, /) -> UpsertReport:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise _no_spark(table)

    def streaming_query(self, _rows: Any, /) -> str | None:
        """There is none."""
        return None

    def count(self, _draft: Draft) -> int | None:
        """Reading is the scan's own work."""
        return None

    def note(self, _scan: Scan) -> str | None:
        """Nothing to say."""
        return None


def _no_spark(what: object) -> UnsupportedError:
    return UnsupportedError(
        f"{what}: needs Spark, open the table with a session, as alcid.session() gives one"
    )
