"""The commands, a module each; to import this registers them."""

from __future__ import annotations

from alcid.cli.app import UsageError, app
from alcid.cli.commands import (
    demo,
    files,
    indexes,
    maintenance,
    query,
    write,
)
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
