"""The command `alcid`: index tables, query them, and inspect their index files.

| status | meaning                                                                              |
|--------|--------------------------------------------------------------------------------------|
| 0      | done                                                                                 |
| 1      | it failed: a table or a file is missing, damaged or of another kind; `verify` found  |
|        | something wrong, `diff` a difference                                                 |
| 2      | the command line is wrong: an option, a type, a column, a predicate or a query       |
| 130    | it was interrupted                                                                   |

Errors and warnings are one line each on stderr; after an error stdout stays empty, also with
`--json`. Everything else goes to stdout, with `--json` as one JSON document on one line.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from alcid.errors import AlcidError, AlcidWarning, ColumnError, OptionError, PredicateError

__all__ = ["main"]

_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, by default those of the process, and return its status."""
    from alcid.cli.app import usage_problem
    from alcid.cli.commands import UsageError, app

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _warnings_as_lines(), _without_logs():
            status = app(args=words or ["--help"], prog_name="alcid", standalone_mode=False)
    except SystemExit as exit_:  # how typer ends after a closed pipe
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
        alcid_error = _translate_spark_error(error)
        if alcid_error is None:
            raise
        return _fail(
            str(alcid_error), _MISUSED if isinstance(alcid_error, PredicateError) else _FAILED
        )
    if status == _INTERRUPTED:  # which typer has caught
        return _fail("interrupted", _INTERRUPTED)
    return status if isinstance(status, int) else 0


def _translate_spark_error(error: Exception) -> AlcidError | None:
    """An error of this library for one that Spark raised; None if it is not Spark's."""
    if "pyspark" not in sys.modules:
        return None
    from alcid.spark.errors import spark_error

    return spark_error(error)


def _fail(message: str, status: int) -> int:
    _print_error(message)
    return status


def _print_error(message: str) -> None:
    from alcid._text import printable

    sys.stderr.write(f"alcid: {printable(message)}\n")


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings of this library without the line of code that raised them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AlcidWarning)
        show_other = warnings.showwarning

        def show(message: Any, category: type[Warning], *location: Any, **more: Any) -> None:
            if issubclass(category, AlcidWarning):
                _print_error(f"warning: {message}")
            else:
                show_other(message, category, *location, **more)

        warnings.showwarning = show
        yield


@contextmanager
def _without_logs() -> Iterator[None]:
    """Keep stderr free of what libraries log about errors that they also raise, as Java stacks."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
