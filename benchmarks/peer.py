"""Our side of a peer: the process that answers requests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.environment import ROOT, PeerError, peer_python
from benchmarks.measure import Cost

__all__ = ["PEER", "Peer", "PeerProcess", "Written"]

PEER = "pypaimon-rust"


@dataclass(frozen=True, slots=True)
class Written:
    """What writing a column once took, and the bytes of its index container."""

    cost: Cost
    container: bytes | None


class PeerProcess:
    """A running peer: it gets one line of JSON for each request, and answers with another."""

    def __init__(self, name: str, python: Path, *arguments: str | Path) -> None:
        """Start it; once it is ready it says so, with a first line.

        Args:
            name: What errors call it.
            python: The interpreter.
            arguments: A script, or -m and a module; then what it is given.

        Raises:
            PeerError: It does not start.
        """
        self._name = name
        command: Sequence[str | Path] = [python, "-W", "ignore", *arguments]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.ready = self._receive()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and wait for the answer.

        Raises:
            PeerError: It has ended.
        """
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise PeerError(f"{self._name} ended") from None
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"{self._name} ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process, by ending its input; kill it where it is in the middle of something."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if kind is not None:
            self._process.kill()
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Peer(PeerProcess):
    """pypaimon-rust; it is asked for one column after the other."""

    def __init__(self) -> None:
        """Start it, after installing it where that has not been done.

        Raises:
            PeerError: It does not start.
        """
        script = Path(__file__).with_name("peer_paimon_rust.py")
        super().__init__(PEER, peer_python(), script)

    def write(self, arrow: Path, data_type: str, options: dict[str, str]) -> Written:
        """Write the column in the Arrow file `arrow` with these table options."""
        answer = self.ask({"arrow": str(arrow), "type": data_type, "options": options})
        container = Path(answer["index"]).read_bytes() if answer["index"] else None
        return Written(Cost(answer["cpu"], answer["wall"]), container)
