"""Polars over the Parquet files."""

from __future__ import annotations

import functools
import operator
from typing import Any

import polars as pl

from benchmarks.queries.engine import Answer, Engine
from benchmarks.queries.question import LIMIT, Leaf, Question

__all__ = ["Polars"]

_COMPARISONS = {"=": operator.eq, "<": operator.lt, ">": operator.gt}


class Polars(Engine):
    """A lazy frame."""

    package = "polars"
    frame: Any

    def open(self) -> None:
        """Begin a frame."""
        self.frame = pl.scan_parquet(self.data / "*.parquet")

    def ask(self, question: Question) -> Answer:
        """Collect what is asked for."""
        frame = self.frame
        if question.where:
            every = [functools.reduce(operator.and_, map(_leaf, each)) for each in question.where]
            frame = frame.filter(functools.reduce(operator.or_, every))
        match question.ask:
            case "top":
                frame = frame.top_k(LIMIT, by="score").sort("score", descending=True)
            case "count":
                return int(frame.select(pl.len()).collect().item())
            case "sum":
                return float(frame.select(pl.col("score").sum()).collect().item())
        return frame.collect().to_arrow()


def _leaf(leaf: Leaf) -> Any:
    column, comparison, literal = leaf
    if comparison == "in":
        return pl.col(column).is_in(literal)
    return _COMPARISONS[comparison](pl.col(column), literal)
