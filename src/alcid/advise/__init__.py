"""Which index pays, judged by a sample of the data.

| module           |                                                                   |
|------------------|-------------------------------------------------------------------|
| `query_text`     | a query as text                                                   |
| `asked`          | the queries, with their columns found                             |
| `typical`        | queries for those who have none                                   |
| `sampling`       | which files are read                                              |
| `column_sample`  | a column of one file: distinct values, nulls, its indexes, built  |
| `facts`, `sizes` | what that says of all files                                       |
| `file_bounds`    | least and greatest values, from footers                           |
| `memory_indexes` | indexes in memory, as planning asks for them                      |
| `sampled_files`  | a table of which only the sample has rows                         |
| `sample_plans`   | queries planned on it                                             |
| `skipping`       | what a query does not read, of the sample and of all files        |
| `unpaged`        | files without a page index                                        |
| `choosing`       | which indexes pay                                                 |
| `reasons`        | why                                                               |
| `report`         | what a user holds                                                 |

Files are read by `alcid.tables.advise`, for `alcid.tables.advise`.
"""

from __future__ import annotations

from alcid.advise.queries import GivenQuery
from alcid.advise.report import Advice, ColumnAdvice, IndexEstimate

__all__ = ["Advice", "ColumnAdvice", "GivenQuery", "IndexEstimate"]
