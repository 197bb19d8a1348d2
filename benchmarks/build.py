"""Building an index, ours and the peer's in turns."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from alcid import FileIndex
from alcid.formats.file_index.container import Container
from alcid.formats.source import BytesSource
from benchmarks.cases import Case
from benchmarks.columns import Column
from benchmarks.measure import Cost, best, cost_of
from benchmarks.peer import Peer

__all__ = ["Build", "PeerBuild", "build_index"]

_RUNS = 3
_LONG = 20.0  # seconds after which the peer is not asked for another run


@dataclass(frozen=True, slots=True)
class PeerBuild:
    """What the peer took."""

    with_index: Cost
    without_index: Cost
    runs: int
    size: int
    same_bytes: bool
    """Whether its index equals ours to the byte."""

    @property
    def cpu(self) -> float:
        """Seconds for the index alone."""
        return self.with_index.cpu - self.without_index.cpu

    @property
    def sure(self) -> bool:
        """Whether the difference stands out from what is subtracted, and so from noise."""
        return self.cpu > 0.5 * self.without_index.cpu


@dataclass(frozen=True, slots=True)
class Build:
    """What building took, and the bytes of the index, without its container."""

    cost: Cost
    size: int
    peer: PeerBuild | None


def build_index(column: Column, case: Case, peer: Peer | None, arrow: Path) -> tuple[Build, bytes]:
    """Build the index of a column, and let the peer do so from the file `arrow`.

    Returns:
        The figures, and the container that we built.
    """
    table = pa.table({"c": column.array})
    ours: list[Cost] = []
    without_index: list[Cost] = []
    with_index: list[Cost] = []
    container, peer_container = b"", b""
    started = time.perf_counter()
    for _ in range(_RUNS):
        cost, index = cost_of(lambda: FileIndex.build(table, case.options))
        ours.append(cost)
        container = index.to_bytes()
        if peer is None or (with_index and time.perf_counter() - started > _LONG):
            continue
        without_index.append(peer.write(arrow, column.data_type, {}).cost)
        written = peer.write(arrow, column.data_type, case.options)
        with_index.append(written.cost)
        peer_container = written.container or b""
    payload = _payload(container)
    peer_build = None
    if peer is not None:
        peer_payload = _payload(peer_container)
        peer_build = PeerBuild(
            best(with_index),
            best(without_index),
            len(with_index),
            len(peer_payload),
            peer_payload == payload,
        )
    return Build(best(ours), len(payload), peer_build), container


def _payload(container: bytes) -> bytes:
    """The one index in a container."""
    opened = Container.open(BytesSource(container))
    (entry,) = opened.entries
    return opened.section(entry).read(0, entry.length)
