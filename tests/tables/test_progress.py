"""How far work is: a function, or lines at most every so often."""

from __future__ import annotations

import io

import pytest

from alcid.cli.printing import choose_progress
from alcid.tables import engine
from alcid.tables.engine import ProgressLines, telling


class Clock:
    """A time that goes on as the test says."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(engine, "time", made)
    return made


def test_lines_come_each_ten_seconds_and_at_the_end(clock: Clock) -> None:
    stream = io.StringIO()
    lines = ProgressLines(stream)
    with telling(lines, "indexing", 4) as tell:
        for seconds in (4, 4, 4, 4):
            clock.now += seconds
            tell(1, 1000)
    assert stream.getvalue() == (
        "indexing: 3/4 files, 3,000 rows, 12 s\nindexing: 4/4 files, 4,000 rows, 16 s\n"
    )


def test_short_work_prints_nothing_and_the_next_begins_anew(clock: Clock) -> None:
    stream = io.StringIO()
    lines = ProgressLines(stream)
    with telling(lines, "indexing", 1) as tell:
        clock.now += 9
        tell(1, 10)
    with telling(lines, "counting", 1) as tell:
        clock.now += 9
        tell(1, 10)
    assert stream.getvalue() == ""
    with telling(lines, "verifying", 2) as tell:
        clock.now += 10
        tell(2, 10)
    assert stream.getvalue() == "verifying: 2/2 files, 10 rows, 10 s\n"


def test_a_function_is_told_after_each_file() -> None:
    told: list[tuple[int, int, int]] = []
    with telling(lambda *state: told.append(state), "indexing", 2) as tell:
        tell(1, 5)
        tell(1, 7)
    assert told == [(1, 2, 5), (2, 2, 12)]


def test_a_command_shows_a_bar_on_a_terminal_and_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(choose_progress(quiet=False), ProgressLines)
    assert choose_progress(quiet=True) is False
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert choose_progress(quiet=False) is True
    assert choose_progress(quiet=True) is False
