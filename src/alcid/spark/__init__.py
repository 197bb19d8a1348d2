"""Work on Spark. Nothing here is loaded by tables that are used in this process only.

| module     |                                                                         |
|------------|-------------------------------------------------------------------------|
| `session`  | `alcid.session`: a Spark that is set up for this library, and its Java  |
| `daemon`   | Python workers that start faster                                        |
| `engine`   | `SparkEngine`, the engine of tables that were opened with a session     |
| `jobs`     | work on many files as a job of few tasks                                |
| `reading`  | `Scan.to_spark`, and which reader is chosen                             |
| `rows`     | the rows of a DataFrame, written by tasks                               |
| `schema`   | columns in the types that Spark has                                     |
| `source`   | `spark.read.format("alcid")`                                            |
| `sql`      | `alcid.sql` and `alcid.explain_sql`                                     |
| `pushdown` | the required columns and the filter of each table in a query's plan     |
| `iceberg`  | Iceberg tables of the session's catalogs                                |
| `errors`   | what Spark raises, as errors of this library                            |
| `jvm`      | all calls into the driver's JVM                                         |
"""

from __future__ import annotations

__all__: list[str] = []
