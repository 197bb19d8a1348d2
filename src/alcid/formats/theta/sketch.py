"""Theta sketches: how many distinct values a column holds, from a few thousand hashes.

A hash is a number of 63 bits. A sketch keeps every distinct hash that it met below a bound, theta,
and lowers theta when they become many: the share of the hashes that are kept is then known, and the
count of all follows. Sketches of parts of a table can be united, as those of whole tables can.

Iceberg builds one sketch for each task by the Alpha rule, unites them one by one, and stores the
result in Puffin, as type apache-datasketches-theta-v1. The bytes here are the same, provided that
the tasks and the order of their rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from alcid.errors import require
from alcid.formats.same_length import Hashes
from alcid.formats.source import BytesSource, Section
from alcid.formats.theta.compact import MAX_THETA, CompactTheta, decode, encode
from alcid.formats.theta.lowest import NOMINAL_ENTRIES, lowest_hashes, unite
from alcid.formats.theta.murmur import murmur
from alcid.formats.theta.single_values import single_values
from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text

if TYPE_CHECKING:
    from alcid.pictures.page import Markup

__all__ = ["NOMINAL_ENTRIES", "AlphaRule", "ThetaSketch", "unite"]

_FIRST_BLOCK, _BLOCK = 1 << 12, 1 << 16
_MAX_AS_FLOAT = 2.0**63
_BINS = 10  # of the picture


class ThetaSketch(Shown):
    """A count of distinct values, estimated within about 1.6 % (standard error).

    Up to 4096 values the count is exact, but for two values of one hash. Nulls are not counted,
    nor are empty strings and binaries. Do not use it where values are deleted: nothing can be taken
    out of a sketch.

    >>> cities = ThetaSketch().update(pa.array(["Graz", "Linz", None, "Graz", ""]))
    >>> cities
    <ThetaSketch: 2 distinct values, 2 hashes>
    >>> more = cities.union(ThetaSketch().update(pa.array(["Graz", "Wien"])))
    >>> more.ndv
    3
    >>> ThetaSketch.from_bytes(more.to_bytes()) == more
    True
    """

    __slots__ = ("_alpha", "_kept")
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self) -> None:
        """Start empty, to be updated by the Alpha rule."""
        self._alpha: AlphaRule | None = AlphaRule()
        self._kept: CompactTheta | None = None  # of the Alpha rule, when it is asked for

    def update(self, array: pa.Array | pa.ChunkedArray) -> ThetaSketch:
        """Count the values of a column in, in place, and return the sketch.

        A sketch that came from `union` or `from_bytes` has no Alpha rule to go on with: `array`
        gets a sketch of its own, which is united with this one. To have Iceberg's bytes, update
        one new sketch with all rows of a task, in as many calls as they come in, and then unite.

        Args:
            array: Of any of Iceberg's primitive types, in any of Arrow's encodings. Only its type
                decides what is hashed: 1 as int and 1 as long are two values.

        Raises:
            UnsupportedError: A nested type, or one that Iceberg does not have. Or a value that its
                type in Iceberg cannot hold; rows before it may be counted by then.
        """
        if self._alpha is None:
            self._kept = unite(self._compact, ThetaSketch().update(array)._compact)
            return self
        self._kept = None
        for values in single_values(array):
            self._alpha.add(murmur(values) >> np.uint64(1))
        return self

    @classmethod
    def of(cls, array: pa.Array | pa.ChunkedArray) -> ThetaSketch:
        """The sketch of a column by its lowest hashes, whatever their order.

        It takes a third of the time of `update`. United with others of its sort it becomes what
        Iceberg stores of a table that several tasks have read, each of many values; if there was
        one task, Iceberg's has another theta.

        >>> ThetaSketch.of(pa.array(["Graz", "Linz", None, "Graz", ""]))
        <ThetaSketch: 2 distinct values, 2 hashes>

        Raises:
            UnsupportedError: As `update`.
        """
        return _sketch(
            lowest_hashes(murmur(values) >> np.uint64(1) for values in single_values(array))
        )

    def union(self, other: ThetaSketch) -> ThetaSketch:
        """A new sketch of the values of both.

        Iceberg stores `ThetaSketch().union(task)` for one task, and for several
        `ThetaSketch().union(first).union(second)` and so on.
        """
        return _sketch(unite(self._compact, require(other, ThetaSketch, "union")._compact))

    def __or__(self, other: ThetaSketch) -> ThetaSketch:
        """The same as `union`."""
        return self.union(other)

    @property
    def estimate(self) -> float:
        """How many distinct values there are, about."""
        return len(self) * (_MAX_AS_FLOAT / self._compact.theta)

    @property
    def ndv(self) -> int:
        """The estimate, cut to an integer as Iceberg does for the property `ndv` of a blob."""
        return int(self.estimate)

    @property
    def theta(self) -> float:
        """The share of all hashes that would be kept: above 0, and 1.0 while none was left out."""
        return self._compact.theta / _MAX_AS_FLOAT

    @property
    def hashes(self) -> Hashes:
        """The hashes that are kept, ascending."""
        return self._compact.hashes.copy()

    def to_bytes(self) -> bytes:
        """The compact form that Iceberg stores (`alcid.formats.theta.compact`).

        >>> ThetaSketch().to_bytes().hex()
        '01030300001e0000'
        """
        return encode(self._compact)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str = "<bytes>"
    ) -> ThetaSketch:
        """Read a compact sketch, of version 3 or 4, by whatever writer.

        Raises:
            FormatError: Bytes that are not a compact sketch; it calls them `name`.
        """
        return _sketch(decode(Section(BytesSource(data, name))))

    @property
    def _compact(self) -> CompactTheta:
        if self._kept is None:
            self._kept = (self._alpha or AlphaRule()).kept()
        return self._kept

    def __len__(self) -> int:
        """How many hashes are kept."""
        return len(self._compact.hashes)

    def __eq__(self, other: object) -> bool:
        """Whether both keep the same hashes below the same theta."""
        if not isinstance(other, ThetaSketch):
            return NotImplemented
        mine, others = self._compact, other._compact
        return mine.theta == others.theta and np.array_equal(mine.hashes, others.hashes)

    def picture(self) -> tuple[str, list[Markup]]:
        """The estimate, what it is made of, and how its hashes are spread below theta."""
        from alcid.pictures.bytes import histogram
        from alcid.pictures.page import element, table

        about = "about " if self._compact.theta < MAX_THETA else ""
        title = f"Theta sketch of {about}{count_text(self.ndv, 'distinct value')}"
        facts = table(
            ["estimate", "theta", "hashes"],
            [[f"{self.estimate:,.1f}", f"{self.theta:.4g}", len(self)]],
            numbers=(0, 1, 2),
        )
        if not len(self):
            return title, [element("p", title), facts]
        shares = self._compact.hashes.astype(np.float64) / self._compact.theta
        counts, _ = np.histogram(shares, _BINS, (0, 1))
        labels = [f"{low * 100 // _BINS} % of theta" for low in range(_BINS)]
        return title, [
            element("p", title),
            facts,
            histogram(labels, counts.tolist(), what="hashes"),
        ]

    def __repr__(self) -> str:
        about = "about " if self._compact.theta < MAX_THETA else ""
        return f"<ThetaSketch: {about}{self.ndv} distinct values, {len(self)} hashes>"

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as bytes; a sketch that follows the Alpha rule goes on with it."""
        return _restore, (self.to_bytes(), self._alpha is not None)


def _sketch(kept: CompactTheta) -> ThetaSketch:
    """A sketch without the Alpha rule."""
    sketch = ThetaSketch()
    sketch._alpha, sketch._kept = None, kept
    return sketch


def _restore(data: bytes, follows_alpha: bool) -> ThetaSketch:
    sketch = ThetaSketch.from_bytes(data)
    if follows_alpha:
        sketch._alpha = AlphaRule(sketch._compact)
    return sketch


class AlphaRule:
    """Which hashes a sketch keeps of those that arrive one after the other.

    A hash below theta that is new is accepted. As soon as more than k were, each one accepted
    lowers theta by the factor k / (k + 1). So theta depends on the order of the hashes, and what
    is kept depends on theta only: all hashes below it.
    """

    def __init__(
        self, start: CompactTheta | None = None, nominal_entries: int = NOMINAL_ENTRIES
    ) -> None:
        """Start empty, or go on from what such a rule kept."""
        self._theta = start.theta if start else MAX_THETA
        self._accepted: set[int] = set(start.hashes.tolist()) if start else set()
        self._nominal = nominal_entries
        self._factor = nominal_entries / (nominal_entries + 1)

    def add(self, hashes: Hashes) -> None:
        """Take hashes in the order in which they arrive."""
        start, size = 0, _FIRST_BLOCK  # small at first, while theta is high and falls
        while start < len(hashes):
            block = hashes[start : start + size]
            below = block[block < np.uint64(self._theta)]
            if len(below):  # Arrow's `unique` keeps the order of first occurrences
                self._accept(pa.array(below).unique().to_numpy().tolist())
            start, size = start + size, min(2 * size, _BLOCK)

    def _accept(self, hashes: list[int]) -> None:
        theta, accepted, nominal = self._theta, self._accepted, self._nominal
        estimating = theta < MAX_THETA
        for value in hashes:
            if 0 < value < theta and value not in accepted:
                accepted.add(value)
                if estimating or len(accepted) > nominal:
                    estimating = True
                    theta = int(theta * self._factor)
        self._theta = theta
        if len(accepted) > 4 * nominal:  # most of them are above theta by now
            self._accepted = {value for value in accepted if value < theta}

    def kept(self) -> CompactTheta:
        """The hashes below theta."""
        accepted = np.fromiter(self._accepted, np.uint64, len(self._accepted))
        return CompactTheta(self._theta, np.sort(accepted[accepted < np.uint64(self._theta)]))
