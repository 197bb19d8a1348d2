"""The commands, a module each; to import this registers them."""

from __future__ import annotations

from alcid.cli.app import UsageError, app
from alcid.cli.commands import (
    advise,
    append,
    build,
    clean,
    compact,
    create,
    delete,
    demo,
    diff,
    drop,
    explain,
    inspect,
    probe,
    query,
    repair,
    sql,
    stats,
    upsert,
    verify,
)
from alcid.cli.commands import list as list_

__all__ = [
    "UsageError",
    "advise",
    "app",
    "append",
    "build",
    "clean",
    "compact",
    "create",
    "delete",
    "demo",
    "diff",
    "drop",
    "explain",
    "inspect",
    "list_",
    "probe",
    "query",
    "repair",
    "sql",
    "stats",
    "upsert",
    "verify",
]
