"""What became of files agrees with what the stages say."""

from __future__ import annotations

from collections import Counter

from alcid.scan import Explanation, Stage


def check_outcomes(told: Explanation) -> None:
    """The outcomes of files and row groups add up to the numbers of the stages."""
    outcomes = told.outcomes
    assert outcomes is not None
    stages = {stage.name: stage for stage in told.stages}
    assert len(outcomes) == told.stages[0].before.files
    assert sum(one.rows for one in outcomes) == told.stages[0].before.rows
    assert sum(one.size for one in outcomes) == told.stages[0].before.bytes
    found = Counter((one.outcome.stage, one.outcome.reason) for one in outcomes)
    dropped = {
        (stage.name, why): count for stage in told.stages for why, count in stage.dropped.items()
    }
    assert {way: n for way, n in found.items() if way[0] != "read"} == dropped
    read = [one for one in outcomes if one.outcome.stage == "read"]
    assert len(read) == told.stages[-1].after.files
    if "row groups" in stages:
        _check_groups(told, stages["row groups"])


def _check_groups(told: Explanation, stage: Stage) -> None:
    opened = [one for one in told.outcomes or () if one.row_groups]
    groups = [group for one in opened for group in one.row_groups]
    for one in opened:
        assert sum(group.rows for group in one.row_groups) == one.rows
        is_read = any(group.outcome.stage == "read" for group in one.row_groups)
        assert is_read == (one.outcome.stage == "read")
    assert len(groups) == stage.before.row_groups
    kept = [group for group in groups if group.outcome.stage == "read"]
    assert len(kept) == stage.after.row_groups
    assert sum(group.rows_looked_at for group in groups) == stage.after.rows
    assert all(0 < group.rows_looked_at <= group.rows for group in kept)
    pages = [group for group in kept if group.pages is not None]
    last = next((one for one in told.stages if one.name == "pages"), None)
    assert bool(pages) == (last is not None)
    if last is not None:
        assert sum(group.pages or 0 for group in pages) == last.after.pages
        assert sum(group.all_pages or 0 for group in pages) == last.before.pages
