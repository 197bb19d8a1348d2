"""Progress of work: a function, or lines that are printed at intervals."""

from __future__ import annotations

import io

import pytest

from alcid.cli.printing import choose_progress
from alcid.tables import progress
from alcid.tables.progress import ProgressLines, track_progress


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_lines_come_each_ten_seconds_and_at_the_end(clock: Clock) -> None:
    stream = io.StringIO()
    lines = ProgressLines(stream)
    with track_progress(lines, "indexing", 4) as report:
        for seconds in (4, 4, 4, 4):
            clock.now += seconds
            report(1, 1000)
    assert stream.getvalue() == (
        "indexing: 3/4 files, 3,000 rows, 12 s\nindexing: 4/4 files, 4,000 rows, 16 s\n"
    )


def test_short_work_prints_nothing_and_the_next_starts_over(clock: Clock) -> None:
    stream = io.StringIO()
    lines = ProgressLines(stream)
    with track_progress(lines, "indexing", 1) as report:
        clock.now += 9
        report(1, 10)
    with track_progress(lines, "counting", 1) as report:
        clock.now += 9
        report(1, 10)
    assert stream.getvalue() == ""
    with track_progress(lines, "verifying", 2) as report:
        clock.now += 10
        report(2, 10)
    assert stream.getvalue() == "verifying: 2/2 files, 10 rows, 10 s\n"


def test_a_function_is_called_after_each_file() -> None:
    calls: list[tuple[int, int, int]] = []
    with track_progress(lambda *state: calls.append(state), "indexing", 2) as report:
        report(1, 5)
        report(1, 7)
    assert calls == [(1, 2, 5), (2, 2, 12)]


def test_a_command_shows_a_bar_on_a_terminal_and_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(choose_progress(quiet=False), ProgressLines)
    assert choose_progress(quiet=True) is False
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert choose_progress(quiet=False) is True
    assert choose_progress(quiet=True) is False
