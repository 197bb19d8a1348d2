"""The command `alcid`: index tables, ask them, and look into their index files.

| status | meaning                                                                              |
|--------|--------------------------------------------------------------------------------------|
| 0      | done                                                                                 |
| 1      | it failed: a table or a file is missing, damaged or of another kind; `verify` found  |
|        | something wrong, `diff` a difference                                                 |
| 2      | the command line is wrong: an option, a type, a column, a predicate or a query       |
| 130    | it was interrupted                                                                   |

An error is one line on stderr, and stdout stays empty, with `--json` too; a warning is one line on
stderr. All else goes to stdout, with `--json` as one JSON document on one line.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from alcid.errors import (
    AlcidError,
    AlcidWarning,
    ColumnError,
    OptionError,
    PredicateError,
)

__all__ = ["main"]

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, by default those of the process, and return its status."""
    from alcid.cli.app import usage_problem
    from alcid.cli.commands import UsageError, app

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _warnings_as_lines(), _without_logs():
            status = app(args=given or ["--help"], prog_name="alcid", standalone_mode=False)
    except SystemExit as exit_:  # typer's way to end for a closed pipe
        return exit_.code if isinstance(exit_.code, int) else 0
    except UsageError as error:
        return _fail(usage_problem(error), _MISUSED)
    except (ColumnError, OptionError, PredicateError) as error:
        return _fail(str(error), _MISUSED)
    except AlcidError as error:
        return _fail(str(error), _FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{where}{error.strerror or error}", _FAILED)
    except Exception as error:
        found = _of_spark(error)
        if found is None:
            raise
        return _fail(str(found), _MISUSED if isinstance(found, PredicateError) else _FAILED)
    if status == _INTERRUPTED:  # which typer has caught
        return _fail("interrupted", _INTERRUPTED)
    return status if isinstance(status, int) else 0


def _of_spark(error: Exception) -> AlcidError | None:
    """What Spark raised, as an error of this library."""
    if "pyspark" not in sys.modules:
        return None
    from alcid.spark.errors import spark_error

    return spark_error(error)


def _fail(message: str, status: int) -> int:
    _tell(message)
    return status


def _tell(message: str) -> None:
    from alcid._text import printable

    sys.stderr.write(f"alcid: {printable(message)}\n")


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Show warnings of this library without a place in its code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AlcidWarning)
        others = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, AlcidWarning):
                _tell(f"warning: {message}")
            else:
                others(message, category, *place, **more)

        warnings.showwarning = show
        yield


@contextmanager
def _without_logs() -> Iterator[None]:
    """Keep off stderr what libraries log of errors that they also raise, as Java's stacks."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
