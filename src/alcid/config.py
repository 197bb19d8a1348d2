"""Settings of the process, and those that hold for a block of code, such as a Spark session's.

Attributes:
    timezone: The zone of a timestamp that is written without one and compared with a TIMESTAMP_LTZ
        column: a name such as `Europe/Vienna`. With Spark, its session's zone counts instead.
    case_sensitive: Whether `ID` and `id` are two columns. Off, as in Spark: a name that matches two
        columns is then an error. With Spark, its session's setting counts instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Settings", "case_sensitive", "current_settings", "timezone", "using"]

timezone: str = "UTC"
case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that hold inside a `using` block."""

    timezone: str
    case_sensitive: bool
    escaped_string_literals: bool = False
    """Whether a backslash in a string literal stands for itself, as Spark's
    `spark.sql.parser.escapedStringLiterals` says."""
    ansi: bool = True
    """Whether an overflow, a division by zero or a failed cast is an error, as in Spark 4."""


_settings: ContextVar[Settings | None] = ContextVar("alcid.settings", default=None)


def current_settings() -> Settings:
    """The settings in force: those of the innermost `using`, else those of this module."""
    return _settings.get() or Settings(timezone, case_sensitive)


@contextmanager
def using(settings: Settings) -> Iterator[None]:
    """Apply other settings in a block, for the thread that runs it.

    >>> with using(Settings("Europe/Vienna", case_sensitive=True)):
    ...     current_settings().timezone
    'Europe/Vienna'
    >>> current_settings().timezone
    'UTC'
    """
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)
