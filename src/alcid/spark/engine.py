"""`SparkEngine`: work on many files as Spark jobs, and rows as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from alcid._arrays import Int64Array
from alcid.config import Settings, using
from alcid.formats.deletion_vector import DeletionVector
from alcid.scan import ReadPlan, Scan, ScanPlan
from alcid.spark import jvm
from alcid.spark.errors import job_errors
from alcid.spark.jobs import job_description, map_tasks
from alcid.spark.jvm.threads import described
from alcid.spark.reading import count_by_spark, strategy_of, to_spark
from alcid.spark.rows import DataFrameRows
from alcid.spark.session import require_version
from alcid.tables.base import find_matching
from alcid.tables.engine import Items, Task
from alcid.tables.progress import ReportProgress, no_progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R")


class SparkEngine:
    """A Spark session, as tables use it."""

    has_spark = True
    delete_bytes: int | None = 64 << 20
    """Bytes that the driver reads to find deleted rows; where there are more, tasks do it."""

    def __init__(self, session: SparkSession, name: str = "") -> None:
        """Use a session; any of a supported Spark will do.

        Args:
            session: The session.
            name: What its UI calls the table.
        """
        require_version()
        self.session, self.name = session, name

    def settings(self) -> AbstractContextManager[None]:
        """The time zone, the case rule, the escapes and ANSI mode of the session, as they are."""
        conf = self.session.conf
        return using(
            Settings(
                str(conf.get("spark.sql.session.timeZone")),
                conf.get("spark.sql.caseSensitive") == "true",
                conf.get("spark.sql.parser.escapedStringLiterals") == "true",
                conf.get("spark.sql.ansi.enabled") == "true",
            )
        )

    def map(
        self,
        function: Callable[[Task[Items]], R],
        items: Items,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[R]:
        """Divide items into tasks of a job, and return the result of each."""
        return map_tasks(self.session, function, items, sizes, report, self.name)

    def to_spark(self, scan: Scan) -> DataFrame:
        """The rows of a scan."""
        with jvm.active(self.session):
            return to_spark(self.session, scan)

    def row_source(self, rows: DataFrame, /) -> DataFrameRows:
        """The rows of a DataFrame, which tasks write."""
        return DataFrameRows(rows, self.name)

    def streaming_query(self, rows: Any, /) -> str | None:
        """The id of the streaming query that a batch is of."""
        return jvm.streaming_query(self.session) if hasattr(rows, "sparkSession") else None

    def count(self, plan: ScanPlan) -> int | None:
        """How many rows match, by tasks; None if they are few enough to be read here."""
        work = job_description(self.name, "counting rows")
        with jvm.active(self.session), described(self.session, work), job_errors():
            counted = count_by_spark(self.session, plan)
        if counted is not None or plan.is_small:
            return counted
        return sum(self.map(_count_rows, plan.read_plan(), plan.sizes))

    def find(self, plan: ScanPlan) -> Mapping[int, DeletionVector]:
        """The positions of the rows that match, by tasks."""
        return find_matching(plan, self)

    def note(self, scan: Scan) -> str | None:
        """How `to_spark` reads, and why."""
        return str(strategy_of(self.session, scan))


def _count_rows(task: Task[ReadPlan]) -> int:
    """How many rows of the candidates match."""
    return sum(map(len, task.items.read()))
