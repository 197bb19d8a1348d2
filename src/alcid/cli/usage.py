"""A wrong command line, in the form of all other errors: what was found, what is expected."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["usage_problem"]

_CHOICES = re.compile(r" is not one of (.+?)\.?$")


def usage_problem(error: Any) -> str:
    """One line for what typer found wrong.

    >>> import typer
    >>> usage_problem(typer.BadParameter("Not so. Did you mean that?"))
    'invalid value: Not so; did you mean that?; see alcid --help'
    """
    message = _wrong_value(error)
    if message is None:
        message = error.format_message().rstrip(".").replace(". Did you mean", "; did you mean")
        message = message[:1].lower() + message[1:]
    command = "alcid" if error.ctx is None else error.ctx.command_path
    return f"{message}; see {command} --help"


def _wrong_value(error: Any) -> str | None:
    """What is wrong with the value of an option; None if that is not known well enough.

    Typer lets pydantic read values, whose words are for programmers, but which says what it read.
    """
    option, causes = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if option is None or causes is None:
        return None
    cause = causes()[0]
    choices = _CHOICES.search(cause["msg"])
    if choices is not None:
        expected = f"one of {choices[1].replace(chr(39), '')}"
    else:
        expected = _numbers(getattr(option, "min", None), getattr(option, "max", None))
        expected = f"a {'whole ' if cause['type'].startswith('int') else ''}number{expected}"
    return f"{max(option.opts, key=len)}: found {cause['input']!r}, expected {expected}"


def _numbers(least: float | None, most: float | None) -> str:
    if least is None:
        return ""
    return f", {least} or more" if most is None else f" from {least} to {most}"
