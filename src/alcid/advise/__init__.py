"""Advice: which indexes pay, estimated by planning queries on a sample of the data.

| module          |                                                                     |
|-----------------|---------------------------------------------------------------------|
| `queries`       | queries as users write them, resolved against the table             |
| `sample`        | which files are read, and the facts of each column in them          |
| `file_bounds`   | min/max of files, from their footers                                |
| `sampled_files` | a table of which only the sample has rows, with indexes in memory   |
| `estimate`      | queries planned on the sample, and what they would skip             |
| `choosing`      | which indexes pay, and why                                          |
| `report`        | the advice as text and JSON                                         |

It plans with `alcid.scan`, so it stands above it; `alcid.tables.advise` reads the files.
"""

from __future__ import annotations

from alcid.advise.queries import QueryInput
from alcid.advise.report import Advice, ColumnAdvice, IndexEstimate

__all__ = ["Advice", "ColumnAdvice", "IndexEstimate", "QueryInput"]
