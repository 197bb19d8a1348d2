"""A session in a separate process, in which each writing task fails once after writing all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LostAttempts", "lost_attempts"]

ROOT = Path(__file__).parents[2]
SERVER = """
import json
import sys
from pathlib import Path
import alcid
from alcid.spark import rows

task = rows._WriteTask
spark = alcid.session(master="local[2,4]")


def failing_once(flags):
    class FailsOnce(task):
        # After the task has written and reported everything.
        def __call__(self, batches):
            yield from super().__call__(batches)
            from pyspark import TaskContext
            flag = Path(flags) / str(TaskContext.get().partitionId())
            if not flag.exists():
                flag.touch()
                raise RuntimeError("this attempt is lost")
    return FailsOnce


for line in sys.stdin:
    script, folder, flags = json.loads(line)
    rows._WriteTask = failing_once(flags)
    exec(script)
    print("result", *report.to_dict().values(), flush=True)
spark.stop()
"""


class LostAttempts:
    """The process, which runs one script after the other."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def run(self, script: str, folder: str | Path, flags: Path) -> tuple[list[str], list[str]]:
        """What a report says, and which tasks were lost once.

        Args:
            script: Makes `report`, with `spark` and `folder`.
            folder: That of the table.
            flags: A folder that is made for the purpose.
        """
        flags.mkdir()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = json.dumps([script, str(folder), str(flags)])
        print(asked, file=self._process.stdin, flush=True)
        line = next((line for line in self._process.stdout if line.startswith("result")), None)
        assert line is not None, self._log.read_text()[-3000:]
        return line.split()[1:], sorted(path.name for path in flags.iterdir())


@contextmanager
def lost_attempts(folder: Path) -> Iterator[LostAttempts]:
    """Start the process, whose errors go to a file in a folder; it ends with the block."""
    log = folder / "errors"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", SERVER],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        yield LostAttempts(process, log)
