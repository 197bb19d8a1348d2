"""A session in a process of its own, whose tasks that write fail once, after all was written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["with_lost_attempts"]

ROOT = Path(__file__).parents[2]
HEAD = """
import sys
from pathlib import Path
import alcid
from alcid.spark import append_tasks

class FailsOnce(append_tasks._Task):
    # After all that the task writes is written and told.
    def __call__(self, batches):
        yield from super().__call__(batches)
        from pyspark import TaskContext
        flag = Path(flags) / str(TaskContext.get().partitionId())
        if not flag.exists():
            flag.touch()
            raise RuntimeError("this attempt is lost")

folder, flags = sys.argv[1:]
append_tasks._Task = FailsOnce
spark = alcid.session(master="local[2,4]")
"""
TAIL = """
print("result", *report.to_dict().values())
spark.stop()
"""


def with_lost_attempts(script: str, folder: str | Path, flags: Path) -> tuple[list[str], list[str]]:
    """What a report says, and which tasks were lost once.

    Args:
        script: Makes `report`, with `spark` and `folder`.
        folder: That of the table.
        flags: A folder that is made for the purpose.
    """
    flags.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", HEAD + script + TAIL, str(folder), str(flags)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = next(line for line in ended.stdout.splitlines() if line.startswith("result"))
    return told.split()[1:], sorted(one.name for one in flags.iterdir())
