"""Two files of deletion vectors, hashes or sketches: the same positions, the same hashes?"""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from alcid.cli.diff.report import Difference, compared
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.hash_index import HashIndex
from alcid.formats.source import Section, Source
from alcid.formats.theta.sketch import ThetaSketch
from alcid.pictures.units import count_text

__all__ = [
    "compare_hash_indexes",
    "compare_sketches",
    "compare_theta_files",
    "compare_vector_files",
    "compare_vectors",
]


def compare_vector_files(a: Source, b: Source, start: int) -> list[Difference]:
    """Vectors in the order of the files, which do not say whose they are."""
    found: list[Difference] = []
    pairs = zip_longest(_vectors(a, start), _vectors(b, start))
    for number, (left, right) in enumerate(pairs):
        entry = f"vector {number}"
        if left is None:
            found.append(Difference(entry, "only in B", count_text(len(right), "position")))
        elif right is None:
            found.append(Difference(entry, "only in A", count_text(len(left), "position")))
        else:
            found += compare_vectors(entry, left, right)
    return found


def _vectors(source: Source, start: int) -> list[DeletionVector]:
    whole = Section(source)
    return [DeletionVector.read(whole.section(*place)) for place in vector_places(whole, start)]


def compare_vectors(entry: str, a: DeletionVector, b: DeletionVector) -> list[Difference]:
    """The first position that only one has; 32 or 64 bits do not matter."""
    return [] if a == b else _first_of(entry, "position", a.to_numpy(), b.to_numpy())


def compare_hash_indexes(a: Source, b: Source) -> list[Difference]:
    """The first hash that only one has; their order does not matter."""
    left, right = (
        HashIndex.from_bytes(source.read(0, source.size), name=source.name) for source in (a, b)
    )
    return _first_of("hashes", "hash", left.hashes, right.hashes)


def compare_theta_files(a: Source, b: Source) -> list[Difference]:
    """Sketches in files of their own."""
    left, right = (
        ThetaSketch.from_bytes(source.read(0, source.size), name=source.name) for source in (a, b)
    )
    return compare_sketches("sketch", left, right)


def compare_sketches(entry: str, a: ThetaSketch, b: ThetaSketch) -> list[Difference]:
    """Theta, and the first hash that only one keeps."""
    if a == b:
        return []
    found = compared(entry, "theta", a.theta, b.theta)
    return found + _first_of(entry, "hash", a.hashes, b.hashes)


def _first_of(
    entry: str, what: str, a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]
) -> list[Difference]:
    different = np.setxor1d(a, b, assume_unique=True)
    if not len(different):
        return []
    first = different[0]
    side = "A" if np.isin(first, a) else "B"
    more = f"; {len(different)} differ" if len(different) > 1 else ""
    return [Difference(entry, "differs", f"{what} {first} only in {side}{more}")]
