"""From a predicate to rows: which files, which rows of them, read how, and why.

| planning       |                                                                     |
|----------------|---------------------------------------------------------------------|
| `table_files`  | what is asked of a table, whatever its kind                         |
| `columns`      | its columns, and what they are in each file                         |
| `bounds`       | which files may match, and which do wholly, by min/max statistics   |
| `leaves`       | the parts of a predicate, for all files                             |
| `indexes`      | the indexes of all files                                            |
| `cost`         | what reading an index costs, and what it saves                      |
| `probing`      | which files may have a value, asked for all at once                 |
| `blooms`       | the same by bloom filters                                           |
| `dictionaries` | and by bitmap indexes, which are searched                           |
| `positions`    | which rows of a file may match                                      |
| `candidates`   | files and rows that are left                                        |
| `planner`      | the stages, one after the other                                     |

| reading        |                                                                     |
|----------------|---------------------------------------------------------------------|
| `row_groups`   | which row groups may have a row                                     |
| `access`       | by pages, or whole row groups                                       |
| `conform`      | rows of a file as rows of the table                                 |
| `places`       | where rows stand                                                    |
| `parts`        | what a reading gives, and what it took                              |
| `reading`      | the rows that match                                                 |
| `sorting`      | ORDER BY                                                            |
| `cut_off`      | the value that no row of the best is behind                         |
| `top`          | ORDER BY with a LIMIT, by a cut-off over all files                  |
| `threads`      | several at a time                                                   |
| `run`          | one way from a predicate to an answer                               |
| `plan`        | rows that are planned, to be read here or elsewhere                 |
| `scan`         | the query that a user holds                                         |

| explaining     |                                                                     |
|----------------|---------------------------------------------------------------------|
| `recorder`     | takes down what stages do                                           |
| `report`       | the stages of reading                                               |
| `outcomes`        | what became of each file                                            |
| `group_fates`  | and of the row groups of those that were opened                     |
| `explanation`  | all of it, as an object, JSON and a page                            |
| `text`         | and as a table to read                                              |
"""

from __future__ import annotations

from alcid.scan.access import table_schema
from alcid.scan.bounds import Bounds
from alcid.scan.columns import Column, TableColumns
from alcid.scan.execution import ReadPlan, ScanEngine, ScanPlan
from alcid.scan.explain import (
    Counts,
    Explanation,
    FileOutcome,
    FileOutcomes,
    IndexUse,
    Outcome,
    RowGroupOutcome,
    Stage,
)
from alcid.scan.scan import Query, Scan
from alcid.scan.table_files import BundleIndexes, DataFiles, FileScan, Indexes, TableFiles

__all__ = [
    "Bounds",
    "BundleIndexes",
    "Column",
    "Counts",
    "DataFiles",
    "Explanation",
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
    "table_schema",
]
