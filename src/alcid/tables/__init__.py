"""Tables: folders of Parquet files, Paimon tables and Iceberg tables.

`parquet_table`, `paimon_table` and `iceberg_table` have the public classes. They stand on
`maintenance` (verify, repair, clean), which stands on `parquet/`, `paimon/` and `iceberg/`; these
know nothing of each other. What they share lies beside them in this folder.
"""

from __future__ import annotations
