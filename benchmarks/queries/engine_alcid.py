"""alcid over the Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow.compute as pc

import alcid
from benchmarks.measure import cost_of
from benchmarks.queries.engine import Answer, Engine, Step, size_of
from benchmarks.queries.indexes import index_options
from benchmarks.queries.question import LIMIT, Question

__all__ = ["Alcid", "AlcidLight", "AlcidScan"]

_READING = ("rows", "fetch")


class Alcid(Engine):
    """With all indexes."""

    package = "alcid"
    light: ClassVar[bool] = False
    use_indexes: ClassVar[bool] = True
    table: Any
    scan: Any

    def prepare(self, rows: int) -> Iterator[Step]:
        """Build the indexes into the own folder, beside none of the data."""
        self.open()
        options = index_options(rows, light=self.light)
        cost, _ = cost_of(lambda: self.table.build_indexes(options))
        yield Step("build_indexes", cost, size_of(self.own))

    def open(self) -> None:
        """Open the folder."""
        self.table = alcid.parquet(str(self.data), index_path=str(self.own))

    def ask(self, question: Question) -> Answer:
        """Answer from the folder."""
        top = question.ask == "top"
        self.scan = self.table.scan(
            question.condition or None,
            columns=["score"] if question.ask == "sum" else None,
            order_by="score DESC" if top else None,
            limit=LIMIT if top else None,
            use_indexes=self.use_indexes,
        )
        if question.ask == "count":
            return int(self.scan.count())
        rows = self.scan.to_arrow()
        return float(pc.sum(rows["score"]).as_py()) if question.ask == "sum" else rows

    def read_by_last(self) -> dict[str, int]:
        """The bytes of its stages: two read data, the others indexes, footers and page offsets."""
        read = {"data": 0, "index": 0}
        for stage in self.scan.explain().stages:
            read["data" if stage.name in _READING else "index"] += stage.bytes_read
        return read


class AlcidLight(Alcid):
    """With small indexes only."""

    light = True


class AlcidScan(Alcid):
    """Without using the indexes that there are."""

    use_indexes = False
