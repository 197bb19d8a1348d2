"""A fuzz target: a name, what it does with an input, its seeds, and how it corrects checksums.

Each input must give an answer or an `AlcidError`; anything else, and any answer that takes too long
or too much memory, is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["LARGEST_SEED", "Target", "small"]

LARGEST_SEED = 6000
"""The largest golden file that inputs are made from: in larger ones few bytes matter."""


def _unchanged(data: bytes) -> bytes:
    return data


@dataclass(frozen=True)
class Target:
    """One decoder."""

    name: str
    run: Callable[[bytes], None]
    """Does everything possible with an input. It may raise an `AlcidError`."""
    seeds: Callable[[], Sequence[bytes]]
    """Correct inputs, the same in every run."""
    repair: Callable[[bytes], bytes] = _unchanged
    """Corrects lengths and checksums, so that what is behind them is reached."""


def small(files: Sequence[bytes]) -> list[bytes]:
    """Those that are not too large, without duplicates, the smallest first."""
    return sorted({data for data in files if len(data) <= LARGEST_SEED}, key=lambda d: (len(d), d))
