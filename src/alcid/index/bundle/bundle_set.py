"""All bundles of a table, compared with the files that it has now: what can be used of each.

An entry is fresh when size and version of its file are those of the listing. Of several fresh ones
the newest is taken, though each would be right. Everything here is in columns, over all files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int8Array, Int64Array
from alcid.errors import AlcidError, DamagedIndexWarning, FormatError
from alcid.index.bundle.files import FileTable, Statistics
from alcid.index.bundle.format import PayloadKind
from alcid.index.bundle.payloads import Coverage, Series, State
from alcid.index.bundle.reader import Bundle


class BundleSet:
    """The bundles of a table and its present files.

    >>> import io
    >>> from alcid.index.bundle import BundleWriter, FileEntry, open_bundles
    >>> from alcid.formats.source import BytesSource
    >>> file = io.BytesIO()
    >>> with BundleWriter(file) as writer:
    ...     row = writer.add_file(FileEntry("a.parquet", size=900, version="1", rows=3))
    ...     writer.add(row, PayloadKind.pages("id"), b"any bytes")
    >>> bundles = open_bundles([BytesSource(file.getvalue())])
    >>> bundle_set = BundleSet(bundles, ["a.parquet", "b.parquet"], [900, 700], ["1", "1"])
    >>> [State(state).name for state in bundle_set.coverage(PayloadKind.pages("id")).states]
    ['FRESH', 'ABSENT']
    """

    def __init__(
        self,
        bundles: Sequence[Bundle],
        paths: Sequence[str] | pa.Array | pa.ChunkedArray,
        sizes: Sequence[int] | npt.NDArray[Any],
        versions: Sequence[str] | pa.Array | pa.ChunkedArray,
        *,
        strict: bool = False,
        on_damage: Callable[[AlcidError], None] | None = None,
    ) -> None:
        """Compare the tables of files, which are read here if they were not before.

        Args:
            bundles: The oldest first.
            paths: The data files that the table has, each once.
            sizes: Their sizes.
            versions: Their versions, as `FileEntry` has them.
            strict: Raise where a bundle is damaged, in place of a warning.
            on_damage: Is called in place of the warning.
        """
        self.strict, self._on_damage = strict, on_damage
        self.paths = _texts(paths)
        sizes = np.asarray(sizes, np.int64)
        versions = _texts(versions)
        self.bundles: tuple[Bundle, ...] = tuple(b for b in bundles if self._has_files(b))
        tables = [bundle.files for bundle in self.bundles]
        self._all = _concatenate(tables)
        self._bases = np.cumsum([0, *map(len, tables)])
        self._coverages: dict[PayloadKind, Coverage] = {}

        positions = pc.index_in(self._all.paths, value_set=self.paths)
        same_version = pc.equal(self._all.versions, versions.take(positions)).fill_null(False)
        self._positions: Int64Array = positions.fill_null(-1).to_numpy().astype(np.int64)
        listed = np.append(sizes, -1)  # for position -1
        self._fresh = (self._all.sizes == listed[self._positions]) & same_version.to_numpy(
            zero_copy_only=False
        )
        newest = np.full(len(self.paths), -1, np.int64)
        rows = np.flatnonzero(self._fresh)
        np.maximum.at(newest, self._positions[rows], rows)
        self._newest: Int64Array = newest

    @property
    def kinds(self) -> tuple[PayloadKind, ...]:
        """The payloads that any bundle has, sorted."""
        return tuple(sorted({kind for bundle in self.bundles for kind in bundle.kinds}))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which there are statistics, sorted."""
        return tuple(sorted({s.column for b in self.bundles for s in b.statistics}))

    @property
    def rows(self) -> pa.Int64Array:
        """The number of rows of each listed file; null where no bundle has it."""
        return pa.array(self._all.rows).take(_or_null(self._newest))

    @property
    def footer_crcs(self) -> pa.UInt32Array:
        """The CRC of the Parquet footer of each listed file, if it is known."""
        return self._all.footer_crcs.take(_or_null(self._newest))

    @property
    def schemas(self) -> pa.DictionaryArray:
        """The schema of each listed file, as `FileEntry` has it; null where it is not known."""
        return self._all.schemas.take(_or_null(self._newest))

    def coverage(self, kind: PayloadKind) -> Coverage:
        """Where the payloads of a kind are; reads their directories the first time."""
        if kind not in self._coverages:
            self._coverages[kind] = self._cover(kind)
        return self._coverages[kind]

    def _cover(self, kind: PayloadKind) -> Coverage:
        count = len(self.paths)
        states = np.full(count, State.ABSENT, np.int8)
        bundles, entries = np.full((2, count), -1, np.int64)
        every: list[Series | None] = []
        for number, bundle in enumerate(self.bundles):
            rows = np.arange(self._bases[number], self._bases[number + 1])
            series, usable = None, State.DAMAGED
            try:
                series = bundle.series(kind)
            except FormatError as error:
                self.report(error)
            else:
                rows = rows[series.directory.rows] if series else rows[:0]
                usable = State.FRESH
            every.append(series)
            positions, fresh = self._positions[rows], np.flatnonzero(self._fresh[rows])
            if series is not None:
                bundles[positions[fresh]], entries[positions[fresh]] = number, fresh
            _raise_to(states, positions[positions >= 0], State.STALE)
            _raise_to(states, positions[fresh], usable)
        return Coverage(kind, tuple(every), states, bundles, entries)

    def statistics(self, column: str) -> tuple[Statistics, ...]:
        """The statistics of a column, for each type that it has in some listed file.

        Each has one value for each listed file; null where none is known, or where the column has
        another type.
        """
        groups: dict[str, list[tuple[int, Statistics]]] = {}
        for base, bundle in zip(self._bases.tolist(), self.bundles, strict=False):
            for group in bundle.statistics:
                if group.column == column:
                    groups.setdefault(str(group.data_type), []).append((base, group))
        gathered = (self._gather(parts) for _, parts in sorted(groups.items()))
        return tuple(group for group in gathered if group.values.null_count < len(self.paths))

    def _gather(self, parts: list[tuple[int, Statistics]]) -> Statistics:
        """The newest fresh statistics of each listed file, out of those of some bundles."""
        chosen = np.full(len(self.paths), -1, np.int64)
        before = 0
        for base, group in parts:
            valid = group.values.is_valid().to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(valid & self._fresh[base : base + len(valid)])
            chosen[self._positions[base + rows]] = before + rows
            before += len(valid)
        values = pa.concat_arrays([group.values for _, group in parts]).take(_or_null(chosen))
        return Statistics(parts[0][1].column, parts[0][1].data_type, values)

    def numbers(self, bundles: Collection[Bundle] | None = None) -> Int64Array:
        """The places of some bundles in the set; by default of all."""
        chosen = {id(bundle) for bundle in (self.bundles if bundles is None else bundles)}
        return np.flatnonzero([id(bundle) in chosen for bundle in self.bundles])

    def fresh_entries(self) -> Int64Array:
        """How many entries of each bundle are fresh."""
        starts = zip(self._bases[:-1].tolist(), self._bases[1:].tolist(), strict=True)
        return np.array([self._fresh[start:end].sum() for start, end in starts], np.int64)

    def live(self, numbers: Int64Array | None = None) -> tuple[Int64Array, FileTable]:
        """The listed files that bundles know as they are: their positions, and their table.

        Args:
            numbers: The bundles, by their places in the set; by default all. What the table says
                of a file is the newest that any bundle of the set knows.
        """
        is_live = self._newest >= 0
        if numbers is not None:
            bundle_of = np.repeat(np.arange(len(self.bundles)), np.diff(self._bases))
            rows = np.flatnonzero(self._fresh & np.isin(bundle_of, numbers))
            is_live[:] = False
            is_live[self._positions[rows]] = True
        positions = np.flatnonzero(is_live)
        taken = pa.array(positions)
        statistics = [
            Statistics(group.column, group.data_type, group.values.take(taken))
            for column in self.columns
            for group in self.statistics(column)
        ]
        return positions, self._all.take(self._newest[positions], statistics)

    def _has_files(self, bundle: Bundle) -> bool:
        try:
            _ = bundle.files
        except FormatError as error:
            self.report(error)
            return False
        return True

    def report(self, error: FormatError) -> None:
        """Warn that something is damaged and not used, or raise if the set is strict."""
        if self.strict:
            raise error
        if self._on_damage is not None:
            self._on_damage(error)
            return
        warn_left_out(error)


def warn_left_out(error: FormatError) -> None:
    """Warn that something is damaged and not used."""
    warnings.warn(f"left out: {error}", DamagedIndexWarning, stacklevel=4)


def _raise_to(states: Int8Array, files: Int64Array, state: State) -> None:
    states[files] = np.maximum(states[files], np.int8(state))


def _texts(values: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.StringArray:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast("string") if isinstance(values, pa.Array) else pa.array(values, "string")


def _or_null(positions: Int64Array) -> pa.Int64Array:
    """Positions to take from; null for those below 0."""
    return pa.array(positions, mask=positions < 0)


def _concatenate(tables: Sequence[FileTable]) -> FileTable:
    """The files of several bundles, one after the other, without their statistics."""
    every = [FileTable.of([]), *tables]
    return FileTable(
        pa.concat_arrays([table.paths for table in every]),
        np.concatenate([table.sizes for table in every]),
        pa.concat_arrays([table.versions for table in every]),
        pa.concat_arrays([table.footer_crcs for table in every]),
        np.concatenate([table.rows for table in every]),
        pa.concat_arrays([table.schemas for table in every]),
    )
