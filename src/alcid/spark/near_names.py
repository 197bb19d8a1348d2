"""What somebody may have meant who asked for a table that the catalogs do not have.

It may be a view, or a name that is mistyped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from alcid.options import did_you_mean
from alcid.spark.jvm import spark_exceptions
from alcid.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_view", "near_names"]

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_CATALOG = re.compile(r"spark\.sql\.catalog\.([^.]+)")


def is_view(session: SparkSession, name: str) -> bool:
    """Whether a name is that of a view, temporary or of a catalog."""
    try:
        return session.catalog.getTable(name).tableType in ("TEMPORARY", "VIEW")
    except spark_exceptions():  # there is nothing of that name, or it may not be looked up
        return False


def near_names(session: SparkSession, name: str) -> str:
    """A hint for the end of an error: catalogs, databases or tables with names like these.

    It is empty where nothing is like it, or the catalog cannot be asked.
    """
    parts = [
        found[1].replace("``", "`") if found[1] else found[2] for found in _PART.finditer(name)
    ]
    catalogs = {found[1] for key in session.conf.getAll if (found := _CATALOG.fullmatch(key))}
    if len(parts) > 2 and parts[0] not in catalogs | {"spark_catalog"}:
        known = ", ".join(sorted(catalogs)) or "none but spark_catalog"
        hint = did_you_mean(parts[0], catalogs) or f"; the session has {known}"
        return f": no catalog {parts[0]}{hint}"
    inside = ".".join(map(quoted, parts[:-1]))
    try:
        found = session.sql(f"SHOW TABLES IN {inside}" if inside else "SHOW TABLES").collect()
    except spark_exceptions():  # no such database, or one that may not be listed
        return ""
    return did_you_mean(parts[-1], [row["tableName"] for row in found])
