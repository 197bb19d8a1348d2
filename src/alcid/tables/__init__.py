"""Tables: data files that belong together, and what is known of each without reading it.

| module            |                                                                  |
|-------------------|------------------------------------------------------------------|
| `partitions`      | the columns that stand in the paths of files: `dt=20250801/`     |
| `partition_types` | their types, inferred as Spark does, and their values            |
| `file_columns`    | the columns of a Parquet file, as Spark reads them               |
| `file_statistics` | what a footer says of them, as far as it can be trusted          |
| `page_bytes`      | where the pages of a column are, packed                          |
| `index_file`      | all that a bundle keeps of one file, made in one go              |
| `schema_bytes`    | the columns of a file, as a bundle keeps them                    |
| `table_schema`    | one schema for files of several                                  |

| building          |                                                                  |
|-------------------|------------------------------------------------------------------|
| `data_files`      | which files of a folder are its data                             |
| `bundle_folder`   | the bundles of a table, as files in a folder                     |
| `build_plan`      | what each file lacks                                             |
| `engine`          | where work on many files is done                                 |
| `in_order`        | threads, with few files in memory                                |
| `progress`        | how far it is, told or shown                                     |
| `building`        | the work                                                         |
| `compaction`      | many bundles to one                                              |
| `build_report`    | what was done                                                    |
| `folder_indexes`  | build, look at and drop the indexes of a folder                  |

| appending         |                                                                  |
|-------------------|------------------------------------------------------------------|
| `target_columns`  | rows in the columns of the table                                 |
| `writing`         | one file of small pages, and what a bundle keeps of it           |
| `staging`         | files on their way, where no reader looks                        |
| `publishing`      | files become part of the table                                   |
| `append_report`   | what was written                                                 |

| maintaining       |                                                                  |
|-------------------|------------------------------------------------------------------|
| `verifying`       | everything that bundles keep is built again and compared         |
| `file_check`      | one file                                                         |
| `entry_check`     | its rows, statistics, schema and pages                           |
| `index_check`     | its indexes                                                      |
| `stored_options`  | the options that an index was built with, from its bytes         |
| `verify_report`   | what was found                                                   |
| `leftovers`       | what nobody needs any more                                       |
| `cleaning`        | bundles are merged, leftovers removed                            |
| `statistics`      | distinct values, counted by sketches                             |
| `statistics_file` | the sketches as a Puffin file                                    |

| reading           |                                                                  |
|-------------------|------------------------------------------------------------------|
| `open_files`      | data files, their footers and the places of their pages          |
| `folder_files`    | the files of a folder at one moment, as planning asks for them   |
| `parquet_folder`  | a folder as a table: what a user holds                           |
| `table`           | what tables of all kinds have                                    |

`paimon/` is the same for Paimon tables, `iceberg/` for Iceberg tables.
"""

from __future__ import annotations

from alcid.tables.paimon.table import PaimonTable
from alcid.tables.parquet_folder import ParquetTable
from alcid.tables.table import Table

__all__ = ["PaimonTable", "ParquetTable", "Table"]
