"""Where the pages of sampled files are, those of Iceberg files that no bundle knows yet, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from alcid.parquet_file import FileLayout, read_layout
from alcid.plan import TableFiles
from alcid.tables.iceberg.conformed_scan import ConformedScan

__all__ = ["SamplePages"]


class SamplePages:
    """Where pages are; of files that no bundle knows yet, by the names that they have."""

    def __init__(self, files: TableFiles) -> None:
        """Look into files of a table when they are asked for."""
        self._files = files
        self._names: dict[int, Mapping[str, str]] = {}

    def has(self, file: int) -> bool:
        """Whether rows of a file can be read by its pages."""
        return self._files.has_pages(file) or bool(self._named(file))

    def layout(self, file: int, columns: Sequence[str]) -> FileLayout:
        """Where the pages of some columns are."""
        files = self._files
        if files.has_pages(file):
            (layout,) = files.layouts([file], [columns])
            return layout
        names = self._named(file)
        found = read_layout(
            files.source(file), [names[name] for name in columns], read_ranges=files.read_ranges
        )
        renamed = (
            replace(one, field=replace(one.field, name=name))
            for name in columns
            for one in (found.column(names[name]),)
        )
        return FileLayout(found.starts, tuple(renamed), found.file)

    def _named(self, file: int) -> Mapping[str, str]:
        """The columns of the table as an Iceberg file calls them, if it has all as they are."""
        if file not in self._names:
            (scan,) = self._files.open([file])
            table = self._files.columns
            inside = [name for name in table.columns if name not in table.partitions]
            known = scan.described(inside) if isinstance(scan, ConformedScan) else {}
            whole = len(known) == len(inside)
            self._names[file] = {name: one.name for name, one in known.items()} if whole else {}
        return self._names[file]
