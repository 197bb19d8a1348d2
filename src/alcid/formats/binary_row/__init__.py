"""Paimon's binary rows: keys and partitions as bytes, and the hash that its buckets go by."""

from __future__ import annotations

from alcid.formats.binary_row.rows import (
    EMPTY_ROW_HASH,
    BinaryRows,
    binary_rows,
    hash_rows,
)

__all__ = ["EMPTY_ROW_HASH", "BinaryRows", "binary_rows", "hash_rows"]
