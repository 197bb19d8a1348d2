"""The command `alcid`: look into index files, and ask them without their data.

| status | meaning                                                                              |
|--------|--------------------------------------------------------------------------------------|
| 0      | done                                                                                 |
| 1      | the file is missing, of another kind or damaged; `inspect` shows what is still whole |
| 2      | the command line is wrong: an option, a type, a column or the predicate              |

An error is one line on stderr, and stdout stays empty, with `--json` too. All else goes to stdout,
with `--json` as one JSON document on one line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from alcid.errors import AlcidError, ColumnError, OptionError, PredicateError

__all__ = ["main"]

_FAILED, _MISUSED = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, by default those of the process, and return its status."""
    from alcid.cli.app import UsageError, app

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = app(args=given or ["--help"], prog_name="alcid", standalone_mode=False)
    except SystemExit as exit_:  # typer's way to end for a closed pipe
        return exit_.code if isinstance(exit_.code, int) else 0
    except UsageError as error:
        return _fail(_usage(error), _MISUSED)
    except (ColumnError, OptionError, PredicateError) as error:
        return _fail(str(error), _MISUSED)
    except AlcidError as error:
        return _fail(str(error), _FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{where}{error.strerror or error}", _FAILED)
    return status if isinstance(status, int) else 0


def _usage(error: Any) -> str:
    """What typer found wrong, in the form of all other errors."""
    message = error.format_message().rstrip(".")
    command = "alcid" if error.ctx is None else error.ctx.command_path
    return f"{message[:1].lower()}{message[1:]}; see {command} --help"


def _fail(message: str, status: int) -> int:
    from alcid.cli.values import printable

    sys.stderr.write(f"alcid: {printable(message)}\n")
    return status
