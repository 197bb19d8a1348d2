"""Why an index pays, or why none does, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from alcid.advice.asked import AskedQuery
from alcid.advice.facts import ColumnFacts
from alcid.advice.report import IndexEstimate, percent
from alcid.advice.unpaged import PAGE_ROWS

__all__ = ["NOT_ASKED", "MissingPages", "reason_against", "reason_for"]

NOT_ASKED = "no query compares it"

_SERVED = 0.5  # of the data, skipped without an index: values are clustered
_MUCH = 0.1  # of the data, that an index would skip
_DENSE = 0.5  # of the pages: where so many have a row, row groups are read whole
_FEW_VALUES = 1000
_HOW = {
    "bloom-filter": "files without the value are left out",
    "bitmap": "only pages with such rows are read",
    "range-bitmap": "only pages with such rows are read",
    "bsi": "only pages with such rows are read",
}
_BY_BOUNDS = "least and greatest values leave files out, which any index of it makes reliable"


@dataclass(frozen=True, slots=True)
class MissingPages:
    """What an index cannot do, as files were written without a page index."""

    share: float | None
    """Of pages that would have a row, if there were a page index; None if that is not known."""
    to_count: str
    """The index that would pay if rows were only counted; empty if none would."""

    def __str__(self) -> str:
        told = "files have no page index (pyarrow: write_page_index=True): "
        if self.share is None:
            told += "no pages to choose from"
        else:
            told += f"with pages of {PAGE_ROWS:,} rows, {percent(self.share)} would be read"
        return told + (f"; to count rows, {self.to_count} pays" if self.to_count else "")


def reason_for(
    column: str, index: str, helped: Sequence[AskedQuery], *, by_bounds: bool = False
) -> str:
    """Why an index of a column pays, by the queries that it helps.

    Args:
        column: The column.
        index: The type of index.
        helped: The queries.
        by_bounds: It only brings least and greatest values that can be trusted.
    """
    uses: list[str] = []
    if any(column in query.looked_up for query in helped):
        uses.append("= and IN")
    if any(column in query.ranged for query in helped):
        few = index == "bloom-filter" and not by_bounds
        uses.append("ranges of few values" if few else "ranges")
    if any(query.is_top and query.keys[0].column == column for query in helped):
        uses.append("ORDER BY with LIMIT")
    how = _HOW[index]
    if by_bounds:
        how = _BY_BOUNDS
    elif helped and all(query.is_count for query in helped) and index != "bloom-filter":
        how = "rows are counted from the index alone"
    elif helped and all(query.is_top for query in helped):
        how = "it knows the best rows of each file"
    return f"for {', '.join(uses)}: {how}"


def reason_against(
    facts: ColumnFacts,
    queries: Sequence[AskedQuery],
    before: float,
    estimates: Sequence[IndexEstimate],
    others: Sequence[str],
    find_missing: Callable[[], MissingPages | None],
) -> str:
    """Why no index of a column pays.

    Args:
        facts: The column.
        queries: Those that it is asked in.
        before: What they skip without indexes.
        estimates: What was tried.
        others: The columns whose indexes serve these queries already.
        find_missing: Says what a page index would do, if files have none.
    """
    if facts.problem:
        return facts.problem
    if facts.null_share == 1.0:
        return "every value is null"
    if not queries:
        return NOT_ASKED
    if facts.distinct is not None and round(facts.distinct) <= 1:
        return "all rows have the same value"
    if others:
        return f"the index of {' and '.join(others)} serves these queries as well"
    best = max(estimates, key=lambda one: one.skip or 0.0)
    if (best.skip or 0.0) - before >= _MUCH:
        skipped = percent(best.skip or 0.0)
        return f"{best.index} would skip {skipped}, but its bytes cost more than that saves"
    if before >= _SERVED:
        return f"least and greatest values of files and row groups skip {percent(before)} already"
    missing = find_missing()
    if missing is not None and (missing.share is None or missing.share < _DENSE):
        return str(missing)
    nearly = "none" if round(best.skip or 0.0, 2) == 0 else f"only {percent(best.skip or 0.0)}"
    if facts.distinct is not None and facts.distinct <= _FEW_VALUES:
        count = round(facts.distinct)
        return f"its {count:,} values are spread over nearly all pages: {nearly} would be skipped"
    if all(estimate.index == "bloom-filter" for estimate in estimates):
        return "a bloom-filter, the only index that takes it, does not answer these queries"
    return f"rows that match are spread over nearly all pages: {nearly} would be skipped"
