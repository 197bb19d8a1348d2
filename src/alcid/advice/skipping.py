"""How much of the data a query would not read, given some indexes: from the sample to the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from alcid.advice.asked import AskedQuery, canonical_name
from alcid.advice.file_bounds import own_bounds
from alcid.advice.memory_indexes import BOUNDS, IndexName
from alcid.advice.sample_plans import SamplePlans

__all__ = ["Skipping"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_ALIKE = 0.1  # sizes that differ by a tenth say the same


class Skipping:
    """Concludes from plans on a sample for all files."""

    def __init__(self, plans: SamplePlans, distinct: Mapping[str, float]) -> None:
        """Take the plans, and how many distinct values the columns of the table have."""
        self.plans, self._distinct, self._files = plans, distinct, plans.files
        self._sampled = np.zeros(len(self._files.sizes), bool)
        self._sampled[plans.chosen] = True
        self._needed: dict[AskedQuery, Floats] = {}
        self._known: dict[tuple[AskedQuery, frozenset[IndexName], bool], float] = {}

    def skip(self, query: AskedQuery, indexes: Iterable[IndexName], *, net: bool = False) -> float:
        """The share of the bytes of the needed columns that is not read, from 0 to 1.

        Needed are the columns of the predicate and those that are given; of an ORDER BY with a
        LIMIT those of the predicate and the order, as the others are fetched for the best rows
        alone; and to count, those of the predicate. What is read of indexes does not count, unless
        it is asked for as `net`: then it may be less than 0.
        """
        used = frozenset(one for one in indexes if one[0] in query.columns)
        if (query, used, net) not in self._known:
            skipped = 1.0 - self._share(query, used, net)
            self._known[query, used, net] = skipped if net else max(skipped, 0.0)
        return self._known[query, used, net]

    def _share(self, query: AskedQuery, used: frozenset[IndexName], net: bool) -> float:
        weights = self._weights(query)
        if not weights.sum():
            return 0.0
        if query.is_top:
            return self._top_share(query, used, weights)
        planned = self.plans.plan(query, used)
        read = planned.read + planned.index_bytes if net else planned.read
        known, possible = self._known_files(query), self.plans.possible(query, used)
        others = known & possible & ~self._sampled
        total = read[self._sampled & known].sum()
        if others.any():
            share = self._share_of_others(query, used, read, possible, others)
            total += (share * weights[others]).sum()
        return float(total / weights[known].sum())

    def _share_of_others(
        self,
        query: AskedQuery,
        used: frozenset[IndexName],
        read: Floats,
        possible: Mask,
        others: Mask,
    ) -> Floats:
        """How much is read of files that are not in the sample, though they may have a row."""
        weights, sampled = self._weights(query), self._sampled & possible
        if not weights[sampled].sum():
            return np.ones(int(others.sum()))
        matches = self.plans.plan(query, self.plans.indexes).matches
        expected = self._expected_hits(query, others)
        if expected is None or matches is None:
            return self._average(read, weights, sampled, others)
        hit, missed = sampled & (matches > 0), sampled & (matches == 0)
        if not weights[missed].sum():
            return self._average(read, weights, sampled, others)
        # A single value that is rare may be in the sample by chance, or not in it: what was found
        # counts for as many files as were looked at, and what is usual for as many as have the rows
        # of one value.
        share, files = expected
        looked = int(sampled.sum())
        hits = (looked * weights[hit].sum() / weights[sampled].sum() + files * share) / (
            looked + files
        )
        of_missed = self._average(read, weights, missed, others)
        if hit.any():
            of_hit = self._average(read, weights, hit, others)
        else:  # without an index that knows rows, all of a file is read
            knows_rows = any(index_type not in ("bloom-filter", BOUNDS) for _, index_type in used)
            of_hit = of_missed if knows_rows else np.ones(len(of_missed))
        found: Floats = hits * of_hit + (1.0 - hits) * of_missed
        return found

    def _expected_hits(self, query: AskedQuery, others: Mask) -> tuple[Floats, float] | None:
        """For a look-up of single values: how many of the files usually have one.

        With it comes in how many files a value stands once, on the whole. None: it is no look-up.
        """
        sought = query.sought
        if sought is None:
            return None
        distinct = self._distinct.get(canonical_name(sought[0], self._files.columns))
        if not distinct:
            return None
        rows, each = self._files.rows, distinct / sought[1]
        return 1.0 - np.exp(-rows[others] / each), each / float(rows[self._sampled].mean())

    def _average(self, values: Floats, weights: Floats, some: Mask, others: Mask) -> Floats:
        """The share that is read of some files, for others: files of like size are alike.

        Small ones are read whole where large ones are not.
        """
        sizes = np.log(np.maximum(self._files.sizes, 1).astype(np.float64))
        apart = np.abs(sizes[others][:, None] - sizes[some][None, :])
        likeness = weights[some] / (_ALIKE**2 + apart**2)
        shares = values[some] / np.maximum(weights[some], 1.0)
        found: Floats = (likeness * shares).sum(axis=1) / likeness.sum(axis=1)
        return found

    def _top_share(self, query: AskedQuery, used: frozenset[IndexName], weights: Floats) -> float:
        """Of the best rows: what a larger sample reads more is read of all other files, too."""
        every, half = (self.plans.plan(query, used, step).read.sum() for step in (1, 2))
        whole, part = (weights[self.plans.chosen[::step]].sum() for step in (1, 2))
        slope = max(every - half, 0.0) / (whole - part) if whole > part else 1.0
        total = every + slope * (weights.sum() - whole)
        return float(min(total / weights.sum(), 1.0))

    def _known_files(self, query: AskedQuery) -> Mask:
        """Files to conclude from: all, unless bounds are known of some only."""
        files = self._files
        known = files.rows > 0
        own = [
            own_bounds(files, group.name, group.data_type) is not None
            for column in query.columns
            if files.columns.find(column) not in files.columns.partitions
            for group in files.columns.groups(column)
            if group.name is not None and group.data_type is not None
        ]
        if not all(own):
            looked = self._sampled.copy()
            looked[self.plans.bounds.looked] = True
            known &= looked
        return known

    def _weights(self, query: AskedQuery) -> Floats:
        """Bytes of the needed columns of each file; of those not in the sample, about."""
        if query not in self._needed:
            files = self._files
            weights = self.plans.needed_bytes(query)
            share = weights.sum() / max(int(files.sizes[self._sampled].sum()), 1)
            others = (files.rows > 0) & ~self._sampled
            weights[others] = files.sizes[others] * share
            self._needed[query] = weights
        return self._needed[query]
