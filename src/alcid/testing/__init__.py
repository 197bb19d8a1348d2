"""Tools to test indexes with, for Alcid's own tests and for whoever writes or reads index files.

- `matching_rows`, `top_rows`: the right answer, by brute force (`alcid.testing.oracle`).
- `flips`, `truncations`: damaged copies of a file (`alcid.testing.faults`).
- `CountingSource`: what of a file was read (`alcid.testing.faults`).
- `Faults`: a file system that fails when it is told to (`alcid.testing.faults`).
- `alcid.testing.strategies`: values at the edges of every type, and literals around them.
- `alcid.testing.strategies`: Hypothesis strategies of columns and predicates. Only this module
  needs Hypothesis, so it is imported by its own name.
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
