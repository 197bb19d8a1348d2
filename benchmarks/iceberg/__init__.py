"""Iceberg tables: questions, statistics and deletes, alcid beside Iceberg's own, on one Spark."""

from __future__ import annotations
