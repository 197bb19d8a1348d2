"""What became of each file of a scan: which stage left it out and why, and its row groups.

Planning notes a number for each file, so that a hundred thousand of them cost nothing; the objects
are made when they are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.plan.table_files import DataFiles, Integers

__all__ = ["Fate", "FateNotes", "Fates", "FileFate", "GroupColumns", "RowGroupFate"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a file or a row group."""

    stage: str
    """The stage that left it out, or `read`."""
    reason: str
    """Why it was left out, or how it is read."""


@dataclass(frozen=True, slots=True)
class RowGroupFate:
    """A row group of a file that was opened."""

    rows: int
    fate: Fate
    rows_looked_at: int
    pages: int | None = None
    """Those that are read of the needed columns; None where whole row groups are read."""
    all_pages: int | None = None
    """Those that these columns have in it."""


@dataclass(frozen=True, slots=True)
class FileFate:
    """A file of the table."""

    path: str
    size: int
    rows: int
    fate: Fate
    row_groups: tuple[RowGroupFate, ...] = ()
    """Empty for a file that was not opened: nobody has asked how it is cut."""

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        return {
            "path": self.path,
            "bytes": self.size,
            "rows": self.rows,
            "stage": self.fate.stage,
            "reason": self.fate.reason,
            "row_groups": [
                {
                    "rows": one.rows,
                    "stage": one.fate.stage,
                    "reason": one.fate.reason,
                    "rows_looked_at": one.rows_looked_at,
                    "pages": one.pages,
                    "all_pages": one.all_pages,
                }
                for one in self.row_groups
            ],
        }


class FateNotes:
    """Takes down what becomes of files while a scan is planned."""

    def __init__(self, files: int) -> None:
        """Begin with files of which nothing is known."""
        self._ways: dict[Fate, int] = {}
        self.codes: npt.NDArray[np.int16] = np.full(files, -1, np.int16)

    def code(self, stage: str, reason: str) -> int:
        """The number that stands for a fate."""
        return self._ways.setdefault(Fate(stage, reason), len(self._ways))

    def note(self, files: Integers, stage: str, reason: str) -> None:
        """Note the fate of some files."""
        if len(files):
            self.codes[files] = self.code(stage, reason)

    @property
    def ways(self) -> tuple[Fate, ...]:
        """The fates, by their number."""
        return tuple(self._ways)

    def copy(self) -> FateNotes:
        """The same, to go on with."""
        other = FateNotes(0)
        other._ways, other.codes = dict(self._ways), self.codes.copy()
        return other


@dataclass(frozen=True, slots=True, eq=False)
class GroupColumns:
    """The row groups of files, in columns."""

    file: Integers
    rows: Integers
    codes: Integers
    looked_at: Integers
    pages: Integers
    """-1 where whole row groups are read."""
    all_pages: Integers

    @classmethod
    def of(cls, parts: Sequence[GroupColumns]) -> GroupColumns:
        """Those of several files, by file."""
        if not parts:
            nothing = np.zeros(0, np.int64)
            return cls(*[nothing] * 6)
        names = ("file", "rows", "codes", "looked_at", "pages", "all_pages")
        whole = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
        order = np.argsort(whole["file"], kind="stable")
        return cls(**{name: column[order] for name, column in whole.items()})


class Fates(Sequence[FileFate]):
    """What became of the files of a scan, in the order of the table."""

    def __init__(self, files: DataFiles, notes: FateNotes, groups: GroupColumns) -> None:
        """Take what was noted; the fate of every file must be known."""
        self._paths: pa.StringArray = files.paths
        self._sizes, self._rows = files.sizes, files.rows
        self._ways, self._codes, self._groups = notes.ways, notes.codes, groups

    @classmethod
    def all_read(cls, files: DataFiles, how: str) -> Fates:
        """Every file is read, by something that does not say more."""
        notes = FateNotes(len(files.sizes))
        notes.note(np.arange(len(files.sizes)), "read", how)
        return cls(files, notes, GroupColumns.of(()))

    def __len__(self) -> int:
        return len(self._codes)

    @overload
    def __getitem__(self, place: int) -> FileFate: ...
    @overload
    def __getitem__(self, place: slice) -> list[FileFate]: ...
    def __getitem__(self, place: int | slice) -> FileFate | list[FileFate]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        file = range(len(self))[place]
        begin, end = np.searchsorted(self._groups.file, [file, file + 1]).tolist()
        return FileFate(
            self._paths[file].as_py(),
            int(self._sizes[file]),
            int(self._rows[file]),
            self._ways[self._codes[file]],
            tuple(map(self._group, range(begin, end))),
        )

    def __iter__(self) -> Iterator[FileFate]:
        return map(self.__getitem__, range(len(self)))

    def _group(self, place: int) -> RowGroupFate:
        groups = self._groups
        pages = int(groups.pages[place])
        return RowGroupFate(
            int(groups.rows[place]),
            self._ways[groups.codes[place]],
            int(groups.looked_at[place]),
            *((None, None) if pages < 0 else (pages, int(groups.all_pages[place]))),
        )

    @property
    def counts(self) -> dict[Fate, int]:
        """How many files had each fate, in the order of the stages."""
        found = Counter(self._codes.tolist())
        return {way: found[code] for code, way in enumerate(self._ways) if found[code]}

    def columns(self) -> dict[str, Any]:
        """All of it in plain lists, sorted by path, for pictures."""
        order = pc.sort_indices(self._paths)
        places = order.to_numpy()
        groups = self._groups
        rank = np.empty(len(places), np.int64)
        rank[places] = np.arange(len(places))
        return {
            "ways": [(way.stage, way.reason) for way in self._ways],
            "paths": self._paths.take(order).to_pylist(),
            "sizes": self._sizes[places].tolist(),
            "rows": self._rows[places].tolist(),
            "codes": self._codes[places].tolist(),
            "groups": {
                "file": rank[groups.file].tolist(),
                "rows": groups.rows.tolist(),
                "codes": groups.codes.tolist(),
                "looked_at": groups.looked_at.tolist(),
                "pages": groups.pages.tolist(),
                "all_pages": groups.all_pages.tolist(),
            },
        }

    def __repr__(self) -> str:
        return f"<Fates of {len(self):,} files>"
