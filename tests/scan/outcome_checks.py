"""The outcomes of files agree with the stages."""

from __future__ import annotations

from collections import Counter

from alcid.scan import Explanation, Stage


def check_outcomes(explanation: Explanation) -> None:
    """Check that the outcomes of files and row groups add up to the numbers of the stages."""
    outcomes = explanation.outcomes
    assert outcomes is not None
    stages = {stage.name: stage for stage in explanation.stages}
    assert len(outcomes) == explanation.stages[0].before.files
    assert sum(outcome.rows for outcome in outcomes) == explanation.stages[0].before.rows
    assert sum(outcome.size for outcome in outcomes) == explanation.stages[0].before.bytes
    counts = Counter((outcome.outcome.stage, outcome.outcome.reason) for outcome in outcomes)
    dropped = {
        (stage.name, why): count
        for stage in explanation.stages
        for why, count in stage.dropped.items()
    }
    assert {way: n for way, n in counts.items() if way[0] != "read"} == dropped
    read = [outcome for outcome in outcomes if outcome.outcome.stage == "read"]
    assert len(read) == explanation.stages[-1].after.files
    if "row groups" in stages:
        _check_groups(explanation, stages["row groups"])


def _check_groups(explanation: Explanation, stage: Stage) -> None:
    opened = [outcome for outcome in explanation.outcomes or () if outcome.row_groups]
    groups = [group for outcome in opened for group in outcome.row_groups]
    for outcome in opened:
        assert sum(group.rows for group in outcome.row_groups) == outcome.rows
        is_read = any(group.outcome.stage == "read" for group in outcome.row_groups)
        assert is_read == (outcome.outcome.stage == "read")
    assert len(groups) == stage.before.row_groups
    kept = [group for group in groups if group.outcome.stage == "read"]
    assert len(kept) == stage.after.row_groups
    assert sum(group.rows_looked_at for group in groups) == stage.after.rows
    assert all(0 < group.rows_looked_at <= group.rows for group in kept)
    pages = [group for group in kept if group.pages is not None]
    last = next((each for each in explanation.stages if each.name == "pages"), None)
    assert bool(pages) == (last is not None)
    if last is not None:
        assert sum(group.pages or 0 for group in pages) == last.after.pages
        assert sum(group.all_pages or 0 for group in pages) == last.before.pages
