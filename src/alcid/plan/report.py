"""The stages of reading, for the explanation: row groups, pages, rows."""

from __future__ import annotations

from dataclasses import replace

from alcid.plan.access import PageAccess
from alcid.plan.candidates import Candidates
from alcid.plan.explanation import Counts, Stage
from alcid.plan.reading import Reading
from alcid.plan.table_files import DataFiles

__all__ = ["counting_stages", "fetching_stage", "reading_stages"]


def reading_stages(
    reading: Reading, candidates: Candidates, found: int | None, spared: tuple[str, str]
) -> list[Stage]:
    """What is read of the candidates, and how many rows were found, if any were looked for.

    `spared` is the name of a stage, and why the files that it leaves out need not be read. Pages
    are counted of files that are read by pages, if any is; of the others whole row groups are read.
    """
    planned, offered = candidates.counts(reading.table), _offered(reading)
    stages = _spared(planned, offered, spared)
    groups = all_groups = pages = all_pages = rows = files = paged = 0
    size = page_size = 0
    for access in reading.accesses:
        rows += access.rows
        if isinstance(access, PageAccess):
            files, paged = files + 1, paged + 1
            touched = access.touched
            groups, all_groups = groups + touched.row_groups, all_groups + touched.all_row_groups
            pages, all_pages = pages + touched.pages, all_pages + touched.all_pages
            size, page_size = size + touched.all_bytes, page_size + touched.bytes
        else:
            files += bool(access.groups)
            groups, all_groups = groups + len(access.groups), all_groups + len(access.starts) - 1
            size, page_size = size + access.size, page_size + access.size
    spent = reading.spent
    left = Counts(files, groups, all_pages if paged else None, rows, size)
    read = replace(left, pages=pages if paged else None, bytes=page_size)
    stages.append(
        Stage(
            "row groups",
            replace(offered, row_groups=all_groups),
            left,
            spent.open_seconds,
            spent.opened.requests,
            spent.opened.bytes_read,
            {"no row group within bounds": offered.files - files} if offered.files > files else {},
        )
    )
    if paged:
        stages.append(Stage("pages", left, read))
    stages.append(
        Stage(
            "rows",
            read,
            replace(read, rows=found),
            spent.read_seconds,
            spent.read.requests,
            spent.read.bytes_read,
        )
    )
    return stages


def counting_stages(
    table: DataFiles, planned: Candidates, rest: Candidates, found: int, spared: tuple[str, str]
) -> list[Stage]:
    """What was counted without reading, and the rest, of which others counted the rows."""
    before = rest.counts(table)
    counted = Stage("rows", before, replace(before, rows=found))
    return [*_spared(planned.counts(table), before, spared), counted]


def fetching_stage(reading: Reading, before: Counts) -> Stage:
    """The other columns of the best rows."""
    spent = reading.spent
    seconds, traffic = spent.open_seconds + spent.read_seconds, spent.opened + spent.read
    return Stage("fetch", before, before, seconds, traffic.requests, traffic.bytes_read)


def _spared(planned: Counts, offered: Counts, spared: tuple[str, str]) -> list[Stage]:
    """The stage that left out files, or rows of them, before they were opened, if one did."""
    if offered == planned:
        return []
    name, why = spared
    files = planned.files - offered.files
    return [Stage(name, planned, offered, dropped={why: files} if files else {})]


def _offered(reading: Reading) -> Counts:
    """All that it was asked to read."""
    every = [one.counts(reading.table) for one in reading.offered]
    return Counts(
        sum(one.files for one in every),
        rows=sum(one.rows or 0 for one in every),
        bytes=sum(one.bytes or 0 for one in every),
    )
