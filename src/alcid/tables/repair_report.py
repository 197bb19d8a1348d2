"""What `repair` did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text
from alcid.tables.build_report import size_text
from alcid.tables.leftovers import Leftover
from alcid.tables.verify_report import Finding

if TYPE_CHECKING:
    from alcid.pictures.page import Markup

__all__ = ["ROLL_BACK", "Mended", "NotMended", "RepairReport"]

ROLL_BACK = "restore the file, or roll the table back to a snapshot before it"
"""What to do where nothing else tells what a file has held."""

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Mended:
    """Something that was wrong.

    >>> print(Mended("index/a-0", "vector of b", "it is no live data file", "dropped"))
    index/a-0: vector of b: it is no live data file: dropped
    """

    file: str
    """As `verify` names it."""
    what: str
    problem: str
    done: str
    """What became of it."""
    count: int = 1
    """How many it was: rows, or hashes of keys."""

    @classmethod
    def of(cls, finding: Finding, done: str, count: int = 1) -> Mended:
        """What `verify` has found, and what was done."""
        return cls(finding.file, finding.what, finding.problem, done, count)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.what, self.problem, self.done)))


@dataclass(frozen=True, slots=True)
class NotMended:
    """Something that is wrong, and stays so."""

    file: str
    """As `verify` names it."""
    what: str
    problem: str
    advice: str
    """What to do about it."""

    @classmethod
    def of(cls, finding: Finding, advice: str) -> NotMended:
        """What `verify` has found, and what to do."""
        return cls(finding.file, finding.what, finding.problem, advice)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.what, self.problem, self.advice)))


@dataclass(frozen=True, slots=True)
class RepairReport(Shown):
    """What `repair` did, or would do; `ok` if nothing is wrong any more.

    >>> mended = Mended("index/a-0", "vector of b", "it is no live data file", "dropped")
    >>> print(RepairReport((mended,), (), (), (), 7, 1, 0.3))
    mended 1 problem in 1 commit: snapshot 7; removed 0 leftovers (0 B); 0.3 s
    mended: index/a-0: vector of b: it is no live data file: dropped
    >>> print(RepairReport((), (), (), (), None, 0, 0.3))
    nothing to mend; removed 0 leftovers (0 B); 0.3 s
    """

    mended: tuple[Mended, ...]
    not_mended: tuple[NotMended, ...]
    removed: tuple[Leftover, ...]
    """Files of no use, as `clean` removes them."""
    kept: tuple[Leftover, ...]
    """Files of no use that are too young to be removed."""
    snapshot_id: int | None
    """The last snapshot that was made; None if there was none, or it is not known before."""
    commits: int
    """How many commits were made; a folder of Parquet files has none."""
    seconds: float
    dry_run: bool = False
    """Nothing was changed."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong any more."""
        return not self.not_mended

    def __str__(self) -> str:
        would = "would have " if self.dry_run else ""
        first = "nothing to mend"
        if self.mended:
            first = f"{would}mended {count_text(len(self.mended), 'problem')}"
            first += f" in {count_text(self.commits, 'commit')}" if self.commits else ""
            first += "" if self.snapshot_id is None else f": snapshot {self.snapshot_id}"
        size = size_text(sum(one.bytes for one in self.removed))
        first += f"; {would}removed {count_text(len(self.removed), 'leftover')} ({size})"
        first += f"; {len(self.kept):,} too young" if self.kept else ""
        first += f"; {len(self.not_mended):,} NOT mended" if self.not_mended else ""
        lines = [first + ("" if self.dry_run else f"; {self.seconds:.1f} s")]
        for told, every in (("not mended", self.not_mended), ("mended", self.mended)):
            lines += [f"{told}: {one}" for one in every[:_SHOWN]]
            if len(every) > _SHOWN:
                lines.append(f"and {len(every) - _SHOWN:,} more {told}")
        return "\n".join(lines)

    def picture(self) -> tuple[str, Sequence[Markup]]:
        """A table of what was mended, and of what was not."""
        from alcid.pictures.page import element, table

        head = ["file", "what", "problem", "done"]
        first = element("p", str(self).splitlines()[0], class_="good" if self.ok else "bad")
        mended = [[one.file, one.what, one.problem, one.done] for one in self.mended]
        others = [[one.file, one.what, one.problem, one.advice] for one in self.not_mended]
        parts = [first, *([table([*head[:3], "to do"], others)] if others else [])]
        return "Repair", [*parts, *([table(head, mended)] if mended else [])]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "ok": self.ok,
            "dry_run": self.dry_run,
            "mended": [asdict(one) for one in self.mended],
            "not_mended": [asdict(one) for one in self.not_mended],
            "removed": [one.to_dict() for one in self.removed],
            "kept": [one.to_dict() for one in self.kept],
            "snapshot_id": self.snapshot_id,
            "commits": self.commits,
            "seconds": self.seconds,
        }
