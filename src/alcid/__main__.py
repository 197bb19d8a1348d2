"""`python -m alcid` is the command `alcid`."""

from __future__ import annotations

import sys

from alcid.cli import main

if __name__ == "__main__":
    sys.exit(main())
