"""An explanation as a table to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from alcid.pictures.units import count_text, size_text

if TYPE_CHECKING:
    from alcid.plan.explanation import Explanation, Stage

__all__ = ["explanation_text", "question_text"]

_HEAD = (
    *("stage", "files", "row groups", "pages", "rows"),
    *("bytes to read", "requests", "bytes read", "ms"),
)


def question_text(told: Explanation) -> str:
    """What was asked."""
    order = f" order by {told.order_by}" if told.order_by else ""
    limit = "" if told.limit is None else f" limit {told.limit}"
    return f"where {told.predicate}{order}{limit}"


def explanation_text(told: Explanation) -> str:
    """The stages, then what was left out and why, what became of indexes, and what else is to say.

    `bytes to read` is what is left of the files, and from the row groups on of the needed columns;
    `bytes read` is what a stage took from the storage, which may be less where it knew it already.
    """
    lines = [question_text(told)]
    if told.stages:
        lines += _aligned([_HEAD, *map(_row, told.stages)])
    for stage in told.stages:
        lines += (
            f"{stage.name}: {count_text(files, 'file')} out: {why}"
            for why, files in stage.dropped.items()
        )
    for use in told.indexes:
        named = use.index or "no index"
        lines.append(f"{use.predicate}: {named}: {use.outcome} ({count_text(use.files, 'file')})")
    if told.fates is not None and told.stages:
        lines += (
            f"rows: {count_text(files, 'file')} read {fate.reason}"
            for fate, files in told.fates.counts.items()
            if fate.stage == "read"
        )
    return "\n".join([*lines, *told.notes])


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows below a head, without the columns that are empty."""
    used = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in used]
    for first, *others in zip(*used, strict=True):
        cells = zip(others, widths[1:], strict=True)
        yield "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in cells)])


def _row(stage: Stage) -> tuple[str, ...]:
    before, after = stage.before, stage.after
    return (
        stage.name,
        _change(before.files, after.files),
        _change(before.row_groups, after.row_groups),
        _change(before.pages, after.pages),
        _change(before.rows, after.rows),
        _change(before.bytes, after.bytes, size=True),
        f"{stage.requests:,}" if stage.requests else "",
        size_text(stage.bytes_read) if stage.requests else "",
        f"{stage.seconds * 1000:.1f}",
    )


def _change(before: int | None, after: int | None, *, size: bool = False) -> str:
    show = size_text if size else "{:,}".format
    left = "" if after is None else show(after)
    if before is None or show(before) == left:
        return left
    return f"{show(before)} -> {left or '?'}"
