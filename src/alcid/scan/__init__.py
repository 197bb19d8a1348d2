"""From a predicate to rows: which files, which rows of them, read how, and why.

| module        |                                                                             |
|---------------|-----------------------------------------------------------------------------|
| `scan`        | `Scan`, the query on a table, run when it is first asked for something      |
| `execution`   | one run of it; `ScanPlan`, which this process or an engine reads            |
| `table_files` | what a scan needs of a table, whatever its kind                             |
| `columns`     | the columns of a table, and of each of its files                            |
| `leaves`      | the predicate, bound to the files: partitions, statistics, selectivity      |
| `bounds`      | min/max statistics compared with a predicate                                |
| `planner`     | the pruning stages: partitions, statistics, file indexes, deletion vectors  |
| `positions`   | rows of a file, by its indexes                                              |
| `candidates`  | what stages hand on: files, rows, reasons, cost                             |
| `access`      | how a file is read: by pages, or whole row groups                           |
| `reading`     | the rows that match                                                         |
| `sorting`     | ORDER BY                                                                    |
| `top_n`       | ORDER BY with a LIMIT, by a cut-off over all files                          |
| `report`      | computes an explanation from what the stages returned                       |
| `explain`     | the explanation, as an object, text and JSON                                |
"""

from __future__ import annotations

from alcid.scan.access import table_schema
from alcid.scan.bounds import Bounds
from alcid.scan.columns import Column, TableColumns
from alcid.scan.execution import ReadPlan, ScanEngine, ScanPlan
from alcid.scan.explain import (
    Counts,
    Explanation,
    FileIndexUse,
    FileOutcome,
    FileOutcomes,
    IndexUse,
    Outcome,
    RowGroupOutcome,
    Stage,
)
from alcid.scan.scan import Query, Scan, left_by_statistics
from alcid.scan.table_files import BundleIndexes, DataFiles, FileScan, Indexes, TableFiles

__all__ = [
    "Bounds",
    "BundleIndexes",
    "Column",
    "Counts",
    "DataFiles",
    "Explanation",
    "FileIndexUse",
    "FileOutcome",
    "FileOutcomes",
    "FileScan",
    "IndexUse",
    "Indexes",
    "Outcome",
    "Query",
    "ReadPlan",
    "RowGroupOutcome",
    "Scan",
    "ScanEngine",
    "ScanPlan",
    "Stage",
    "TableColumns",
    "TableFiles",
    "left_by_statistics",
    "table_schema",
]
