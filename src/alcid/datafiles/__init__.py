"""Rows of data files, by position or by row group: Parquet, ORC and Avro."""

from __future__ import annotations
