"""Files without a page index: no index can choose among pages that nobody knows.

Spark always writes one, and pyarrow only if it is asked to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from alcid.advice.asked import AskedQuery
from alcid.advice.sample_plans import SamplePlans
from alcid.parquet_file.layout_reader import UNPAGED
from alcid.plan.conform import file_columns

__all__ = ["PAGE_ROWS", "as_count", "lack_pages", "pages_with_rows"]

PAGE_ROWS = 2048
"""Of the pages that Alcid writes, and that advice speaks of."""


def as_count(query: AskedQuery) -> AskedQuery:
    """The same query, if its rows were only counted."""
    return replace(query, output=(), keys=(), limit=None, is_count=True)


def lack_pages(plans: SamplePlans, query: AskedQuery) -> bool:
    """Whether half of the sampled files or more have no page index of a column that is read."""
    if query.is_count:
        return False
    columns = tuple(dict.fromkeys([*query.where_columns, *query.output]))
    lacking = sum(_lacks_pages(plans, file, columns) for file in plans.chosen.tolist())
    return 2 * lacking >= max(len(plans.chosen), 1)


def pages_with_rows(plans: SamplePlans, query: AskedQuery) -> float | None:
    """The share of pages that would have a matching row, if files had pages of `PAGE_ROWS`.

    None if the rows are not known without reading, or the best are asked for.
    """
    found = None if query.is_top else plans.matching(query)
    if found is None:
        return None
    rows = plans.files.rows
    pages = int((-(-rows[plans.chosen] // PAGE_ROWS)).sum())
    hit = 0
    for file, selection in zip(found.files.tolist(), found.selections, strict=True):
        if selection.rows is None:
            hit += int(-(-rows[file] // PAGE_ROWS))
        else:
            hit += len(np.unique(np.asarray(selection.rows.to_array()) // PAGE_ROWS))
    return hit / max(pages, 1)


def _lacks_pages(plans: SamplePlans, file: int, columns: Sequence[str]) -> bool:
    inside = file_columns(plans.files, file, columns)
    if not inside or not plans.pages.has(file):
        return False
    layout = plans.pages.layout(file, inside)
    return any(layout.column(name).whole == UNPAGED for name in inside)
