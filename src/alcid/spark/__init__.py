"""Work on Spark. Nothing here is needed to use tables in this process, and nothing is loaded by it.

| module           |                                                                   |
|------------------|-------------------------------------------------------------------|
| `session`        | a Spark that is set up for this library                           |
| `java`           | a Java for it, where the machine has none                         |
| `daemon`         | Python tasks that start faster                                    |
| `source`         | `spark.read.format("alcid")`                                      |
| `source_options` | its options, and how a catalog keeps them                         |
| `engine`         | Spark as what does the work of tables                             |
| `shares`         | work on many files as a job of few tasks                          |
| `reading`        | the rows of a scan as a DataFrame                                 |
| `ways`           | who reads them: the driver, tasks or Spark's own reader           |
| `schema`         | columns in the types that Spark has                               |
| `append`         | the rows of a DataFrame as files of a table                       |
| `append_schema`  | its columns, and what footers say of them                         |
| `sql`            | `alcid.sql`                                                       |
| `relations`      | what a query needs of each table, by Spark's own plan             |
| `conditions`     | Spark's expressions as predicates                                 |
| `sql_explanation`| what was asked of the tables of a query, and why                  |
| `jvm`            | all that needs the JVM of the driver                              |
"""

from __future__ import annotations

__all__: list[str] = []
