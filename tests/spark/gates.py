"""Where tasks stop, so that a test can kill them: see `cluster_driver.GatedStorage`."""

from __future__ import annotations

from pathlib import Path


class Gate:
    """Where tasks report what they have written, and wait."""

    def __init__(self, folder: Path, holds: tuple[int, ...]) -> None:
        self._folder = folder
        folder.mkdir()
        for task in holds:
            (folder / f"hold-{task}").touch()

    def __str__(self) -> str:
        return str(self._folder)

    def attempts(self) -> set[tuple[int, int]]:
        """Task and number of the attempts that have written a file."""
        return {(int(task), int(attempt)) for task, attempt, _ in self._puts()}

    def count(self) -> int:
        """How many files were written."""
        return len(self._puts())

    def open(self) -> None:
        for hold in self._folder.glob("hold-*"):
            hold.unlink()

    def _puts(self) -> list[list[str]]:
        return [path.name.split("-")[1:] for path in self._folder.glob("put-*")]
