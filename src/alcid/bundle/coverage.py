"""Which files of a table have a payload of some kind, and in which bundle."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from alcid.bundle.checked import CheckedSource
from alcid.bundle.directory import Integers
from alcid.bundle.kinds import Kind
from alcid.bundle.series import Series
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.reader import IndexReader

__all__ = ["Coverage", "State"]


class State(IntEnum):
    """Whether a listed file has a payload that can be used; of several the highest counts."""

    ABSENT = 0
    """No bundle has one."""
    STALE = 1
    """The file was changed since."""
    DAMAGED = 2
    """A bundle has the file, but what it has of this kind cannot be read."""
    FRESH = 3


@dataclass(frozen=True, eq=False)
class Coverage:
    """For every listed file: the newest fresh payload of one kind."""

    kind: Kind
    series: tuple[Series | None, ...]
    """The payloads of each bundle."""
    states: npt.NDArray[np.int8]
    """One of `State` for each file."""
    bundles: Integers
    """The bundle that has it, by its number in the set; -1: none."""
    entries: Integers
    """The entry in `series[bundle]`; -1: none."""

    @property
    def lengths(self) -> Integers:
        """The bytes of each payload; 0 where there is none."""
        found = np.zeros(len(self.entries), np.int64)
        for number, series in enumerate(self.series):
            if series is not None:
                files = np.flatnonzero(self.bundles == number)
                found[files] = series.directory.lengths[self.entries[files]]
        return found

    def payload(self, file: int) -> CheckedSource | None:
        """The payload of a file, by its place in the listing."""
        found = self.find(file)
        return None if found is None else found[0].payload(found[1])

    def index(
        self, file: int, key_type: KeyType, payload: CheckedSource | None = None
    ) -> IndexReader | None:
        """The index of a file; see `Series.index` for the arguments and what it raises."""
        found = self.find(file)
        return None if found is None else found[0].index(found[1], key_type, payload)

    def find(self, file: int) -> tuple[Series, int] | None:
        """The payloads among which that of a file is, and its entry there."""
        entry = int(self.entries[file])
        series = self.series[self.bundles[file]] if entry >= 0 else None
        return None if series is None else (series, entry)
