"""The commands, in modules by what they work on; importing this package registers them all."""

from __future__ import annotations

from alcid.cli.app import UsageError, app
from alcid.cli.commands import demo, files, indexes, maintenance, query, write
from alcid.cli.commands import indexes as list_

__all__ = [
    "UsageError",
    "app",
    "demo",
    "files",
    "indexes",
    "list_",
    "maintenance",
    "query",
    "write",
]
