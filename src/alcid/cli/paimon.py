"""Tables that a command is only for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alcid.errors import UnsupportedError

if TYPE_CHECKING:
    from alcid import PaimonTable
    from alcid.cli.tables import AnyTable

__all__ = ["require_paimon"]


def require_paimon(table: AnyTable, command: str) -> PaimonTable:
    """The table, if it is one of Paimon.

    Raises:
        UnsupportedError: It is another.
    """
    from alcid import PaimonTable

    if isinstance(table, PaimonTable):
        return table
    raise UnsupportedError(
        f"{table.location}: {command} is for Paimon tables, found {type(table).__name__}"
    )
