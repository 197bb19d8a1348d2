"""Tools for tests of index readers and writers, used by Alcid's own tests.

- `matching_rows`, `top_rows`: the expected rows by brute force (`alcid.testing.oracle`).
- `flips`, `truncations`: damaged copies of a file (`alcid.testing.faults`).
- `CountingSource`: counts the reads of a file (`alcid.testing.faults`).
- `Faults`: a file system that fails on demand (`alcid.testing.faults`).
- `alcid.testing.strategies`: edge values of every type and literals around them, and
  Hypothesis strategies for columns and predicates. Only this module needs Hypothesis, so import it
  by its own name.
"""

from __future__ import annotations

from alcid.testing.faults import CountingSource, Damage, Faults, flips, truncations
from alcid.testing.oracle import matching_rows, top_rows, values_of

__all__ = [
    "CountingSource",
    "Damage",
    "Faults",
    "flips",
    "matching_rows",
    "top_rows",
    "truncations",
    "values_of",
]
