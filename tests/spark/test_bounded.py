"""Every operation with little memory, at a hundredth of the size, or a tenth in `make soak`."""

from __future__ import annotations

from pathlib import Path

from alcid.errors import UnsupportedError
from alcid.spark.session import ensure_java
from tests.interop.peers import unavailable
from tests.spark.bounded import run_bounded
from tests.tables.paimon.machine_runs import IS_SOAK

ROWS = 2_000_000 if IS_SOAK else 200_000


def test_no_operation_needs_more_memory_than_there_is_on_a_small_cluster(tmp_path: Path) -> None:
    try:
        ensure_java()
    except UnsupportedError as error:
        unavailable(str(error))
    steps = {step.name: step for step in run_bounded(tmp_path, ROWS)}
    assert len(steps) >= 18
    # The driver reads no more than footers, statistics and answers: not the rows.
    for name in ("folder: build", "keyed: read", "keyed: count", "keyed: compact"):
        step = steps[name]
        assert step.driver_read_mb < 0.5 * max(step.workers_read_mb, 10.0), step
