"""Tables: data files that belong together, and what is known of each without reading it.

| module            |                                                                  |
|-------------------|------------------------------------------------------------------|
| `partitions`      | the columns that stand in the paths of files: `dt=20250801/`     |
| `partition_types` | their types, inferred as Spark does, and their values            |
| `file_columns`    | the columns of a Parquet file, as Spark reads them               |
| `file_statistics` | what a footer says of them, as far as it can be trusted          |
| `page_bytes`      | where the pages of a column are, packed                          |
| `index_file`      | all that a bundle keeps of one file, made in one go              |
"""
