"""Reading the files of a sample, here or on Spark."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.advice.column_sample import ColumnSample, sample_column
from alcid.options import BitmapOptions, IndexSpec
from alcid.parquet_file.decoding import int96_as
from alcid.plan import DataFiles
from alcid.tables.engine import Share, Tell
from alcid.tables.in_order import in_order

__all__ = ["SampleWork"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SampleWork:
    """The work on the sample, for `Engine.map`: an item is a file."""

    files: DataFiles
    places: Integers
    """Of each of these files in the table."""
    columns: tuple[str, ...]

    def __call__(self, share: Share, tell: Tell) -> list[ColumnSample]:
        """Look at the files of a share."""
        found: list[ColumnSample] = []
        items = share.items.tolist()
        with closing(in_order(self._look, items, share.threads)) as results:
            for file, some in zip(items, results, strict=False):
                found += some
                tell(1, int(self.files.rows[file]))
        return found

    def _look(self, file: int) -> list[ColumnSample]:
        """Read a file column by column, so that one is in memory at a time."""
        files, found = self.files, []
        (scan,) = files.open([file])
        for column in self.columns:
            group = next(one for one in files.columns.groups(column) if one.files[file])
            if group.name is None or group.data_type is None or group.problem:
                continue
            spec = IndexSpec(group.name, "bitmap", BitmapOptions())
            own = files.columns.file_name(file, files.columns.find(column))
            with int96_as(files.int96_unit):
                values = scan.read(None, [own or ""], read_ranges=files.read_ranges).column(0)
            found.append(
                sample_column(
                    values,
                    group.data_type,
                    file=int(self.places[file]),
                    column=column,
                    own_name=group.name,
                    map_key=None if group.name == own else spec.map_key,
                )
            )
        return found
