"""Choose the index of each column that pays, if any, and say why in a sentence.

A larger index has to skip more than a smaller one does. And an index has to skip something that
neither statistics nor the other indexes skip: those that are not missed are left out again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from alcid.advise.estimate import PAGE_ROWS, Skipping, as_count, pages_with_rows, without_pages
from alcid.advise.queries import ResolvedQuery
from alcid.advise.report import ColumnAdvice, IndexEstimate, percent
from alcid.advise.sample import ColumnFacts
from alcid.advise.sampled_files import BOUNDS, IndexName

NOT_COMPARED = "no query compares it"

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
_BY_BOUNDS = "min/max leave files out, which any index of it makes reliable"


@dataclass(frozen=True, slots=True)
class MissingPages:
    """What an index cannot do, as files were written without a page index."""

    fraction: float | None
    """Of pages that would have a row, if there were a page index; None if that is not known."""
    to_count: str
    """The index that would pay if rows were only counted; empty if none would."""

    def __str__(self) -> str:
        text = "files have no page index (pyarrow: write_page_index=True): "
        if self.fraction is None:
            text += "no pages to choose from"
        else:
            text += f"with pages of {PAGE_ROWS:,} rows, {percent(self.fraction)} would be read"
        return text + (f"; to count rows, {self.to_count} pays" if self.to_count else "")


def reason_for(
    column: str, index: str, helped: Sequence[ResolvedQuery], *, by_bounds: bool = False
) -> str:
    """Why an index of a column pays, by the queries that it helps.

    `by_bounds`: it only brings min/max that can be trusted.
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
    queries: Sequence[ResolvedQuery],
    before: float,
    estimates: Sequence[IndexEstimate],
    others: Sequence[str],
    find_missing: Callable[[], MissingPages | None],
) -> str:
    """Why no index of a column pays, for the queries that compare it or sort by it.

    `before` is what they skip without indexes, `others` are the columns whose indexes serve them
    already. `find_missing` says what a page index would do, if files have none.
    """
    if facts.problem:
        return facts.problem
    if facts.null_share == 1.0:
        return "every value is null"
    if not queries:
        return NOT_COMPARED
    if facts.distinct is not None and round(facts.distinct) <= 1:
        return "all rows have the same value"
    if others:
        return f"the index of {' and '.join(others)} serves these queries as well"
    best = max(estimates, key=lambda estimate: estimate.skip or 0.0)
    if (best.skip or 0.0) - before >= _MUCH:
        skipped = percent(best.skip or 0.0)
        return f"{best.index} would skip {skipped}, but its bytes cost more than that saves"
    if before >= _SERVED:
        return f"min/max of files and row groups skip {percent(before)} already"
    missing = find_missing()
    if missing is not None and (missing.fraction is None or missing.fraction < _DENSE):
        return str(missing)
    nearly = "none" if round(best.skip or 0.0, 2) == 0 else f"only {percent(best.skip or 0.0)}"
    if facts.distinct is not None and facts.distinct <= _FEW_VALUES:
        count = round(facts.distinct)
        return f"its {count:,} values are spread over nearly all pages: {nearly} would be skipped"
    if all(estimate.index == "bloom-filter" for estimate in estimates):
        return "a bloom-filter, the only index that takes it, does not answer these queries"
    return f"rows that match are spread over nearly all pages: {nearly} would be skipped"


_WORTH = 0.05
"""What an index must skip, beyond what is skipped without it: one byte of twenty ..."""
_PRICE = 0.2
"""... and more by this share of its size: one that is as large as the data, one byte of four."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The indexes that pay, and advice on all columns."""

    indexes: frozenset[IndexName]
    columns: tuple[ColumnAdvice, ...]


def choose(
    facts: Sequence[ColumnFacts],
    queries: Sequence[ResolvedQuery],
    skipping: Skipping,
    *,
    rows: int,
    data_bytes: int,
    is_typical: bool,
) -> Choice:
    """Choose indexes for queries.

    With typical queries, which were made up, a column is evaluated by those that an index helps.
    """
    return _Chooser(facts, queries, skipping, rows, data_bytes, is_typical).choose()


class _Chooser:
    """Advice on the columns of a table."""

    def __init__(
        self,
        facts: Sequence[ColumnFacts],
        queries: Sequence[ResolvedQuery],
        skipping: Skipping,
        rows: int,
        data_bytes: int,
        is_typical: bool,
    ) -> None:
        self._is_typical = is_typical
        self._facts = {fact.column: fact for fact in facts}
        self._skipping, self._rows, self._data_bytes = skipping, max(rows, 1), max(data_bytes, 1)
        self._queries: Mapping[str, Sequence[ResolvedQuery]] = {
            fact.column: [query for query in queries if fact.column in query.columns]
            for fact in facts
        }
        # The smallest first. One that is larger than the data is no help to anyone.
        self._candidates: dict[str, list[str]] = {
            fact.column: sorted(
                (kind for kind, size in fact.index_bytes.items() if size <= data_bytes),
                key=lambda kind, fact=fact: fact.index_bytes[kind],  # type: ignore[misc]
            )
            if self._queries[fact.column]
            else []
            for fact in facts
        }
        self._all_indexes = frozenset(
            (column, kind) for column, kinds in self._candidates.items() for kind in kinds
        )

    def choose(self) -> Choice:
        """The best of each column, without those that are not missed."""
        best = {column: self._best(column, queries) for column, queries in self._queries.items()}
        chosen = frozenset((column, kind) for column, kind in best.items() if kind)
        given_up: dict[str, frozenset[IndexName]] = {}
        largest_first = sorted(
            chosen, key=lambda index: self._facts[index[0]].index_bytes[index[1]], reverse=True
        )
        for index in largest_first:
            rest = chosen - {index}
            queries = self._queries[index[0]]
            missed = self._net(queries, chosen) - self._net(queries, rest)
            if missed - self._price(*index) < _WORTH:
                chosen = rest
                given_up[index[0]] = rest
        return Choice(
            chosen,
            tuple(self._advice(column, chosen, column in given_up) for column in self._facts),
        )

    def _best(self, column: str, queries: Sequence[ResolvedQuery]) -> str:
        """The smallest index of a column, or a larger one that skips enough more; else none."""
        others = frozenset(index for index in self._all_indexes if index[0] != column)
        alone, beside = self._net(queries, frozenset()), self._net(queries, others)
        chosen, best = "", 0.0
        for kind in self._candidates[column]:
            # Of an OR, an index helps only beside those of the other legs.
            gain = max(
                self._net(queries, frozenset({(column, kind)})) - alone,
                self._net(queries, others | {(column, kind)}) - beside,
            )
            gain -= self._price(column, kind)
            if gain >= best + _WORTH:
                chosen, best = kind, gain
        return chosen

    def _price(self, column: str, kind: str) -> float:
        """What an index must skip to make up for its bytes."""
        return _PRICE * self._facts[column].index_bytes[kind] / self._data_bytes

    def _net(self, queries: Sequence[ResolvedQuery], indexes: frozenset[IndexName]) -> float:
        """What queries skip, on average, less what they read of indexes."""
        if not queries:
            return 0.0
        return sum(self._skipping.skip(query, indexes, net=True) for query in queries) / len(
            queries
        )

    def _mean(self, queries: Sequence[ResolvedQuery], indexes: frozenset[IndexName]) -> float:
        """What queries skip, on average."""
        return sum(self._skipping.skip(query, indexes) for query in queries) / len(queries)

    def _advice(self, column: str, chosen: frozenset[IndexName], is_given_up: bool) -> ColumnAdvice:
        facts, queries = self._facts[column], self._queries[column]
        index = next((kind for name, kind in chosen if name == column), "")
        size = facts.index_bytes[index] if index else 0
        helped = self._helped(column, index, chosen) if index else []
        if self._is_typical and helped:  # a column need not be good for all typical queries
            queries = helped
        before = self._mean(queries, frozenset()) if queries else None
        after = self._mean(queries, chosen) if queries else None
        estimates = tuple(
            IndexEstimate(
                kind,
                facts.index_bytes[kind] / self._rows,
                facts.index_bytes[kind],
                self._mean(queries, frozenset({(column, kind)})) if queries else None,
            )
            for kind in sorted(facts.index_bytes, key=lambda kind: facts.index_bytes[kind])
        )
        if index:
            reason = reason_for(
                column, index, helped, by_bounds=self._is_by_bounds(column, index, chosen, helped)
            )
        else:
            others = sorted({name for name, _ in chosen if any(name in q.columns for q in queries)})
            reason = reason_against(
                facts,
                queries,
                before or 0.0,
                estimates,
                others if is_given_up else [],
                partial(self._missing_pages, column, queries),
            )
        return ColumnAdvice(
            column,
            "" if facts.data_type is None else str(facts.data_type),
            index,
            reason,
            size / self._rows,
            size,
            after,
            before,
            None if facts.distinct is None else round(facts.distinct),
            facts.null_share,
            estimates,
        )

    def _missing_pages(self, column: str, queries: Sequence[ResolvedQuery]) -> MissingPages | None:
        """What files without a page index lose; None if that is not the reason."""
        plans = self._skipping.plans
        unpaged = [query for query in queries if without_pages(plans, query)]
        if not unpaged or not any(kind != "bloom-filter" for kind in self._candidates[column]):
            return None
        fractions = [
            fraction for query in unpaged if (fraction := pages_with_rows(plans, query)) is not None
        ]
        counts = [as_count(query) for query in unpaged if not query.is_top]
        return MissingPages(
            sum(fractions) / len(fractions) if fractions else None, self._best(column, counts)
        )

    def _helped(
        self, column: str, index: str, chosen: frozenset[IndexName]
    ) -> Sequence[ResolvedQuery]:
        """The queries that skip more by an index."""
        rest = chosen - {(column, index)}
        skip = self._skipping.skip
        return [
            query
            for query in self._queries[column]
            if skip(query, chosen) - skip(query, rest) >= _WORTH
        ]

    def _is_by_bounds(
        self, column: str, index: str, chosen: frozenset[IndexName], helped: Sequence[ResolvedQuery]
    ) -> bool:
        """Whether an index helps by nothing but the bounds that it brings."""
        bounds = chosen - {(column, index)} | {(column, BOUNDS)}
        skip = self._skipping.skip
        return bool(helped) and all(
            skip(query, chosen) - skip(query, bounds) < _WORTH for query in helped
        )
