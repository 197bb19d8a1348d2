"""pypaimon as a side of a case, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.environment import PeerError
from benchmarks.measure import Cost
from benchmarks.peer import PeerProcess
from benchmarks.table_run import Side
from tests.interop.peers import UNAVAILABLE, pypaimon_python

__all__ = ["PYPAIMON", "PyPaimon"]

PYPAIMON = "pypaimon"


class PyPaimon(PeerProcess):
    """It hashes keys and assigns buckets, row by row."""

    def __init__(self, folder: Path) -> None:
        """Start it, after installing it where that has not been done.

        Args:
            folder: For the files that it gets its rows from.

        Raises:
            PeerError: It cannot be installed, or does not start.
        """
        try:
            python = pypaimon_python()
        except UNAVAILABLE as error:
            raise PeerError(f"{PYPAIMON} was not installed: {error}") from None
        super().__init__(PYPAIMON, python, Path(__file__).with_name("peer_pypaimon.py"))
        self._folder, self._files = folder, 0

    def hashing(self, keys: pa.Table, expected: npt.NDArray[np.int32]) -> Side:
        """Hash the rows of a table."""
        return self._side("hash", keys, expected)

    def assigning(
        self,
        hashes: npt.NDArray[np.int32],
        expected: npt.NDArray[np.int32],
        *,
        target: int,
        known: bool = False,
        singly: bool = False,
    ) -> Side:
        """Assign buckets of `target` keys to hashes that are new, or that have theirs already."""
        table = pa.table({"hash": hashes})
        return self._side("assign", table, expected, target=target, known=known, singly=singly)

    def _side(
        self, request: str, rows: pa.Table, expected: npt.NDArray[np.int32], **options: Any
    ) -> Side:
        self._files += 1
        path = str(self._folder / f"{self._files}.arrow")
        schema = pa.schema([field.with_nullable(False) for field in rows.schema])
        batch = rows.cast(schema).combine_chunks()
        with pa.ipc.new_file(path, schema) as writer:
            writer.write_table(batch)

        def run(times: int) -> tuple[Cost, Any]:
            answer = self.ask({"request": request, "arrow": path, "times": times, **options})
            return Cost(answer["cpu"], answer["wall"]), answer["answer"]

        return Side(len(rows), run, lambda found: found == expected.tolist(), PYPAIMON)
