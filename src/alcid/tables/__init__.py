"""Tables: folders of Parquet files, Paimon tables and Iceberg tables."""

from __future__ import annotations
