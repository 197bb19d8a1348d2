"""The folder of a demo: new, or that of an earlier demo, and never one of somebody else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from alcid.errors import OptionError

__all__ = ["EVENTS", "LAKE", "REPORT", "WAREHOUSE", "claim"]

EVENTS, WAREHOUSE, LAKE, REPORT = "events", "warehouse", "lake", "report.html"
_MARK = ".alcid-demo"  # says that what the folder holds may be made anew


def claim(folder: str | os.PathLike[str]) -> Path:
    """Make the folder, or empty it if a demo made it; only what a demo makes is removed.

    Raises:
        OptionError: It is there, and holds something else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     made = claim(f"{root}/demo")
    ...     (made / REPORT).touch()
    ...     claim(made) == made, (made / REPORT).exists()
    ...     claim(root)
    Traceback (most recent call last):
    alcid.errors.OptionError: ...: found a folder that no demo has made, expected a new one
    """
    path = Path(folder)
    mark = path / _MARK
    if path.exists() and not path.is_dir():
        raise OptionError(f"{path}: found a file, expected the name of a new folder")
    if path.exists() and any(path.iterdir()) and not mark.exists():
        raise OptionError(f"{path}: found a folder that no demo has made, expected a new one")
    path.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for name in (EVENTS, WAREHOUSE, LAKE):
        shutil.rmtree(path / name, ignore_errors=True)
    (path / REPORT).unlink(missing_ok=True)
    return path
