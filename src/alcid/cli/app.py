"""The typer application: registers commands, lists them by section, and words usage errors.

A command is a function in a module of `alcid.cli.commands`, decorated with `@command(Section...)`.
It imports what does the work when it runs, so that `--help` stays fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

# Typer exports one kind of usage error, and not what all of them are.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class Section(StrEnum):
    """The headings of the list of commands, in their order."""

    BEGIN = "Begin"
    QUERY = "Query a table"
    INDEX = "Indexes of a table"
    CHANGE = "Make and change a table"
    FILES = "Inspect index files"


class _Commands(TyperGroup):
    """The list of commands by section, which typer offers only with rich."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # is typer's
        """Write the list into the help."""
        widest = max(map(len, self.commands))
        limit = formatter.width - 6 - widest
        for section in Section:
            rows = [
                (name.ljust(widest), entry.get_short_help_str(limit))
                for name, entry in sorted(self.commands.items())
                if getattr(entry, "rich_help_panel", None) == section
            ]
            if rows:
                with formatter.section(section.value):
                    formatter.write_dl(rows)


class _Command(TyperCommand):
    """A command whose usage line shows required arguments without typer's braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments after its name."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]


app = typer.Typer(
    cls=_Commands,
    help="Index lake tables, query them, and inspect their index files.",
    epilog="Example: alcid query events --where \"user = 'u7'\"",
    add_completion=False,
    rich_markup_mode=None,  # plain help, which needs no import of rich
    pretty_exceptions_enable=False,
)


def command(
    section: Section, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command, under its own name by default.

    The fields of a parameter that is a dataclass, such as `Opening`, become options of the command.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        registered: Callable[..., None] = app.command(name, cls=_Command, rich_help_panel=section)(
            _with_fields(function)
        )
        return registered

    return register


def _with_fields(function: Callable[..., None]) -> Callable[..., None]:
    """The function with its dataclass parameters replaced by their fields."""
    parameters = signature(function, eval_str=True).parameters
    classes = {
        key: parameter.annotation for key, parameter in parameters.items() if _is_class(parameter)
    }
    if not classes:
        return function
    fields = {key: signature(kind, eval_str=True).parameters for key, kind in classes.items()}

    @wraps(function)
    def run(**values: Any) -> None:
        for key, kind in classes.items():
            values[key] = kind(**{part: values.pop(part) for part in fields[key]})
        function(**values)

    own = [parameter for key, parameter in parameters.items() if key not in classes]
    parts = [parameter for part in fields.values() for parameter in part.values()]
    flat = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*own, *parts)]
    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]  # typer reads it
    return run


def _is_class(parameter: Parameter) -> bool:
    return isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"alcid {version('alcid')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of `alcid` itself."""


_CHOICES = re.compile(r" is not one of (.+?)\.?$")


def usage_problem(error: Any) -> str:
    """A usage error of typer as one line.

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
    """What is wrong with the value of an option; None if pydantic did not read it.

    Typer lets pydantic parse values, whose own messages are written for programmers.
    """
    option, causes = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if option is None or causes is None:
        return None
    cause = causes()[0]
    choices = _CHOICES.search(cause["msg"])
    if choices is not None:
        expected = f"one of {choices[1].replace(chr(39), '')}"
    else:
        expected = _range_text(getattr(option, "min", None), getattr(option, "max", None))
        expected = f"a {'whole ' if cause['type'].startswith('int') else ''}number{expected}"
    return f"{max(option.opts, key=len)}: found {cause['input']!r}, expected {expected}"


def _range_text(minimum: float | None, maximum: float | None) -> str:
    if minimum is None:
        return ""
    return f", {minimum} or more" if maximum is None else f" from {minimum} to {maximum}"
