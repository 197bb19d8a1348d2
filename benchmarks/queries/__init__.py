"""Whole queries, from a predicate to rows: alcid on Parquet files, beside other engines."""

from __future__ import annotations
