"""The environment of the peers: their packages beside ours could not always be installed."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["ROOT", "PeerError", "peer_python"]

ROOT = Path(__file__).resolve().parent.parent
_ENVIRONMENT = ROOT / ".bench-venv"
_PYTHON = _ENVIRONMENT / ("Scripts" if sys.platform == "win32" else "bin") / "python"
_PACKAGES = ("datafusion", "duckdb", "numpy", "polars", "pyarrow", "pylance", "pypaimon-rust")


class PeerError(Exception):
    """A peer cannot be installed, started or asked; the message is one line."""


def peer_python() -> Path:
    """The interpreter that has the peers, which are installed where that has not been done.

    Versions are the newest that constraints.txt allows.

    Raises:
        PeerError: They cannot be installed.
    """
    done, wanted = _ENVIRONMENT / ".installed", "\n".join(_PACKAGES)
    if done.exists() and done.read_text() == wanted:
        return _PYTHON
    print(f"installing the peers into {_ENVIRONMENT.name}", file=sys.stderr)
    venv.create(_ENVIRONMENT, with_pip=True, clear=True)
    (_ENVIRONMENT / ".gitignore").write_text("*\n")
    pip = [str(_PYTHON), "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt"]
    ended = subprocess.run(
        [*pip, *_PACKAGES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise PeerError(f"peers were not installed: {ended.stderr.strip().splitlines()[-1]}")
    done.write_text(wanted)
    return _PYTHON
