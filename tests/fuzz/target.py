"""What is fuzzed: a name, what is done with an input, where inputs begin, what mends checksums.

Each input must give an answer or an `AlcidError`; anything else, and any answer that takes too long
or too much memory, is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["LARGEST_SEED", "Target", "small"]

LARGEST_SEED = 6000
"""Bytes of the largest golden file that inputs are made of: in larger ones few places matter."""


def _unchanged(data: bytes) -> bytes:
    return data


@dataclass(frozen=True)
class Target:
    """One decoder."""

    name: str
    run: Callable[[bytes], None]
    """Does all that can be done with an input. It may raise an `AlcidError`."""
    seeds: Callable[[], Sequence[bytes]]
    """Inputs that are right, the same in every run."""
    repair: Callable[[bytes], bytes] = _unchanged
    """Makes lengths and checksums right, so that what lies behind them is reached."""


def small(files: Sequence[bytes]) -> list[bytes]:
    """Those that are not too large, each once, the smallest first."""
    return sorted({data for data in files if len(data) <= LARGEST_SEED}, key=lambda d: (len(d), d))
