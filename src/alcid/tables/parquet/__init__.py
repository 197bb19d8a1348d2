"""Folders of Parquet files."""

from __future__ import annotations
