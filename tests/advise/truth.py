"""What queries really skip once the indexes are built, taken from the explanations of scans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from alcid.tables.base import Table


def bytes_read(table: Table[Any], query: str | Mapping[str, Any], *, use_indexes: bool) -> int:
    """The bytes of the needed columns that a scan reads."""
    asked = {"where": query} if isinstance(query, str) else dict(query)
    is_count = asked.pop("count", False)
    scan = table.scan(**asked, use_indexes=use_indexes)
    if is_count:
        scan.count()
    elif "order_by" in asked and "limit" in asked:
        scan.to_arrow()
    rows = [stage for stage in scan.explain().stages if stage.name == "rows"]
    return (rows[0].before.bytes or 0) if rows else 0


def true_skip(table: Table[Any], queries: Iterable[str | Mapping[str, Any]]) -> float:
    """The share of these bytes that is not read, on average over queries."""
    shares = [
        1 - bytes_read(table, query, use_indexes=True) / bytes_read(table, query, use_indexes=False)
        for query in queries
    ]
    return sum(shares) / len(shares)
