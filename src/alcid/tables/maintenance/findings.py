"""Findings of `verify`: what is wrong with which file, typed, so that a repair decides by kinds.

A finding has a kind, the file, what of the file it is about (a column, a type of index, a data
file), and a detail for people. Its text is rendered from these by `LABELS`; nothing reads the text
back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Final

from alcid._text import count_text
from alcid.errors import AlcidError
from alcid.tables.reports import Plain

PAGES, STATISTICS = "pages", "statistics"
"""What stands in `IndexCheck.index_type` for what is no index."""

MISSING: Final = "is not there"
"""The detail of a file that should be there."""

_MAX_FINDINGS = 1_000_000  # in memory, of some hundred bytes each; all of them are repaired
_MAX_TASK_FINDINGS = 100_000  # that a task sends to the driver; `repair` looks again for the others


class Severity(Enum):
    """Whether readers are affected."""

    PROBLEM = auto()
    """Queries fail, or may give wrong rows."""
    WARNING = auto()
    """Right for reads, but in the way of others, as of writers of Paimon's Java; or not checked."""


class FindingKind(Enum):
    """What is wrong with a file."""

    # Data files
    DATA_FILE = auto()
    """It is missing, or cannot be read."""
    SIZE = auto()
    """A file of any kind has another size than the metadata say."""
    ROWS = auto()
    """It has another number of rows than its manifest says."""
    COLUMN = auto()
    """A column cannot be read."""
    METRICS = auto()
    """The metrics of an Iceberg manifest are not true of all values."""
    STATISTICS = auto()
    """The statistics of a column, in a bundle or in a Paimon manifest, are not true."""
    NOT_CHECKED = auto()
    """A file, or a column of it, is of a kind that is not read."""

    # Indexes of data files
    INDEX = auto()
    PAGES = auto()
    """The page offsets of a column, as a bundle has them, are not those of the file."""
    CONTAINER = auto()
    """The container of a data file's indexes cannot be read."""
    ENTRY_FOOTER = auto()
    """The footer is another than the one that the bundle was built from."""
    ENTRY_ROWS = auto()
    ENTRY_SCHEMA = auto()
    BUNDLE = auto()
    """A bundle cannot be read at all."""
    BUNDLE_FILES = auto()
    """The list of files of a bundle is damaged."""
    BUNDLE_DIRECTORY = auto()
    """The directory of one index of a bundle is damaged."""

    # Deletes
    VECTORS_TWICE = auto()
    """A data file has several deletion vectors."""
    VECTOR = auto()
    """The deletion vector of a data file is damaged, or not what the metadata say."""
    VECTOR_FILE = auto()
    """A Puffin file of deletion vectors is missing, or cannot be read."""
    VECTOR_RANGES = auto()
    """The entry of a Paimon index file names no vector."""
    INDEX_FILE = auto()
    """An index file of a Paimon bucket is missing, or cannot be read."""
    INDEX_FILE_ROWS = auto()
    POSITION_DELETES = auto()
    POSITIONS = auto()
    """A position delete file names rows that a data file does not have."""
    EQUALITY_DELETES = auto()

    # Statistics files of Iceberg
    STATISTICS_FILE = auto()
    STATISTICS_FOOTER = auto()
    STATISTICS_BLOB = auto()
    """A blob is not in the file as the table metadata list it."""
    SKETCH = auto()
    """A theta sketch cannot be read, or counts otherwise than is written beside it."""

    # Metadata of Paimon
    SNAPSHOT = auto()
    MANIFEST = auto()
    MANIFEST_COUNTS = auto()
    SCHEMA = auto()
    OLDER_SNAPSHOTS = auto()

    # Keys of Paimon
    KEYS = auto()
    """Keys are out of order, overlap within a level, or are live twice."""
    KEY_HASHES = auto()
    """A hash index has not the keys of its bucket."""
    DELETE_ROWS = auto()
    SEQUENCE_NUMBERS = auto()


LABELS: dict[FindingKind, str] = {
    FindingKind.DATA_FILE: "",
    FindingKind.SIZE: "size",
    FindingKind.ROWS: "rows",
    FindingKind.COLUMN: "column {0.column!r}",
    FindingKind.METRICS: "metrics of {0.column!r}",
    FindingKind.STATISTICS: "statistics of {0.column!r}",
    FindingKind.NOT_CHECKED: "",
    FindingKind.INDEX: "{0.index_type} of {0.column!r}",
    FindingKind.PAGES: "pages of {0.column!r}",
    FindingKind.CONTAINER: "index",
    FindingKind.ENTRY_FOOTER: "footer",
    FindingKind.ENTRY_ROWS: "rows",
    FindingKind.ENTRY_SCHEMA: "schema",
    FindingKind.BUNDLE: "bundle",
    FindingKind.BUNDLE_FILES: "files",
    FindingKind.BUNDLE_DIRECTORY: "{0.column}",
    FindingKind.VECTORS_TWICE: "deletion vectors",
    FindingKind.VECTOR: "deletion vector of {0.data_file}",
    FindingKind.VECTOR_FILE: "deletion vectors",
    FindingKind.VECTOR_RANGES: "deletion vectors",
    FindingKind.INDEX_FILE: "",
    FindingKind.INDEX_FILE_ROWS: "row count",
    FindingKind.POSITION_DELETES: "positions",
    FindingKind.POSITIONS: "positions of {0.data_file}",
    FindingKind.EQUALITY_DELETES: "equality deletes",
    FindingKind.STATISTICS_FILE: "statistics file",
    FindingKind.STATISTICS_FOOTER: "footer",
    FindingKind.STATISTICS_BLOB: "{0.column}",
    FindingKind.SKETCH: "distinct values of {0.column}",
    FindingKind.SNAPSHOT: "snapshot",
    FindingKind.MANIFEST: "",
    FindingKind.MANIFEST_COUNTS: "counts in its list",
    FindingKind.SCHEMA: "schema",
    FindingKind.OLDER_SNAPSHOTS: "older snapshots",
    FindingKind.KEYS: "keys",
    FindingKind.KEY_HASHES: "hashes of keys",
    FindingKind.DELETE_ROWS: "rows that delete",
    FindingKind.SEQUENCE_NUMBERS: "sequence numbers",
}
"""How reports name what a finding is about; for people only."""


@dataclass(frozen=True, slots=True)
class Finding(Plain):
    """Something that is wrong.

    >>> finding = Finding(FindingKind.INDEX, "a.parquet", "2 rows missing", "id", "bitmap")
    >>> print(finding)
    a.parquet: bitmap of 'id': 2 rows missing
    """

    kind: FindingKind
    file: str
    """The data file, the bundle, or any other file of the table."""
    detail: str = ""
    """What is wrong, in words."""
    column: str = ""
    """The column, or the columns, that it is about."""
    index_type: str = ""
    data_file: str = ""
    """The data file that a deletion vector or a position is of."""
    severity: Severity = Severity.PROBLEM

    @property
    def what(self) -> str:
        """What of the file is wrong, as `bitmap of 'id'`; empty for the file itself."""
        return LABELS[self.kind].format(self)

    @property
    def problem(self) -> str:
        """What is wrong with it."""
        return self.detail

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {"file": self.file, "what": self.what, "problem": self.problem}

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.what, self.problem)))


@dataclass(slots=True)
class Findings:
    """Problems and warnings: all problems are counted, and the first are kept."""

    count: int = 0
    """The problems, also those that are not kept."""
    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def add(
        self,
        kind: FindingKind,
        file: str,
        detail: object,
        *,
        column: str = "",
        data_file: str = "",
        severity: Severity = Severity.PROBLEM,
    ) -> None:
        """Record a problem."""
        self.append(Finding(kind, file, str(detail), column, "", data_file, severity))

    def warn(
        self,
        kind: FindingKind,
        file: str,
        detail: object,
        *,
        column: str = "",
        data_file: str = "",
    ) -> None:
        """Record a warning."""
        severity = Severity.WARNING
        self.add(kind, file, detail, column=column, data_file=data_file, severity=severity)

    def append(self, finding: Finding) -> None:
        """Record a finding."""
        first = self.warnings
        if finding.severity is Severity.PROBLEM:
            first, self.count = self.problems, self.count + 1
        if len(first) < _MAX_FINDINGS:
            first.append(finding)

    def extend(self, other: Findings) -> None:
        """Record what other workers have found."""
        self.count += other.count
        self.problems += other.problems[: max(_MAX_FINDINGS - len(self.problems), 0)]
        self.warnings += other.warnings[: max(_MAX_FINDINGS - len(self.warnings), 0)]

    def for_driver(self) -> Findings:
        """What a task tells of them: the number of all problems, and the first findings."""
        most = _MAX_TASK_FINDINGS
        return Findings(self.count, self.problems[:most], self.warnings[:most])


@dataclass(frozen=True, slots=True)
class Example:
    """A row of which an index is wrong."""

    file: str
    row: int
    value: str
    """The value of the row."""

    def __str__(self) -> str:
        return f"row {self.row} of {self.file}, {self.value}"


@dataclass(slots=True)
class IndexCheck:
    """An index of a table: how many of the checked files have it as it should be.

    >>> print(IndexCheck("id", "bitmap", checked=40, sound=38, differing=2, false_negatives=7))
    bitmap of 'id': 38 of 40 files sound, 2 differ (7 rows missing)
    """

    column: str
    index_type: str
    """The type of index; `pages` for page offsets, `statistics` for min/max statistics."""
    checked: int = 0
    """Files whose index was built again and compared."""
    sound: int = 0
    differing: int = 0
    """Files whose index is not what their data says."""
    damaged: int = 0
    """Files whose index cannot be read."""
    false_negatives: int = 0
    """Rows that the index does not give for their own value: queries miss them."""
    false_positives: int = 0
    """Rows that the index gives for a value that they do not have; not for bloom filters."""
    missing: int = 0
    """Files of the table that could have it, and have none."""
    stale: int = 0
    """Files of the table that were changed since it was built."""
    example: Example | None = None
    """The first row that is wrong."""

    def add(self, other: IndexCheck) -> None:
        """Count the same index in later files."""
        self.checked += other.checked
        self.sound += other.sound
        self.differing += other.differing
        self.damaged += other.damaged
        self.false_negatives += other.false_negatives
        self.false_positives += other.false_positives
        self.missing += other.missing
        self.stale += other.stale
        self.example = self.example or other.example

    def __str__(self) -> str:
        rows = [
            f"{count_text(count, 'row')} {what}"
            for count, what in (
                (self.false_negatives, "missing"),
                (self.false_positives, "too many"),
            )
            if count
        ]
        differ = f"{self.differing:,} differ" + (f" ({', '.join(rows)})" if rows else "")
        counts = (
            (self.differing, differ),
            (self.damaged, f"{self.damaged:,} damaged"),
            (self.stale, f"{self.stale:,} stale"),
            (self.missing, f"{self.missing:,} missing"),
        )
        others = "".join(f", {text}" for count, text in counts if count)
        index = f"{self.index_type} of {self.column!r}"
        return f"{index}: {self.sound:,} of {count_text(self.checked, 'file')} sound{others}"


@dataclass(slots=True)
class Checked:
    """The result of checks of some files."""

    files: int = 0
    """Data files that are done, for the progress."""
    checked: int = 0
    changed: int = 0
    rows: int = 0
    indexes: dict[tuple[str, str], IndexCheck] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    def index(self, column: str, index_type: str) -> IndexCheck:
        """The counts of an index."""
        return self.indexes.setdefault((column, index_type), IndexCheck(column, index_type))

    def add(self, other: Checked) -> None:
        """Count later files."""
        self.files += other.files
        self.checked += other.checked
        self.changed += other.changed
        self.rows += other.rows
        for check in other.indexes.values():
            self.index(check.column, check.index_type).add(check)
        self.findings.extend(other.findings)

    def count(self, path: str, column: str, index_type: str, problem: str) -> None:
        """Count a file as sound, or as differing where there is a problem."""
        check = self.index(column, index_type)
        check.checked += 1
        if problem:
            check.differing += 1
            self.findings.append(_index_finding(path, column, index_type, problem))
        else:
            check.sound += 1

    def count_damaged(self, path: str, column: str, index_type: str, error: AlcidError) -> None:
        """Count a file whose index, statistics or pages cannot be read."""
        check = self.index(column, index_type)
        check.checked, check.damaged = check.checked + 1, check.damaged + 1
        self.findings.append(_index_finding(path, column, index_type, str(error)))

    def rename(self, names: dict[str, str]) -> None:
        """Count indexes under other names of their columns."""
        checks = list(self.indexes.values())
        self.indexes.clear()
        for check in checks:
            own, bracket, key = check.column.partition("[")
            column = f"{names.get(own, own)}{bracket}{key}"
            self.index(column, check.index_type).add(replace(check, column=column))


_KINDS: Final = {PAGES: FindingKind.PAGES, STATISTICS: FindingKind.STATISTICS}


def _index_finding(path: str, column: str, index_type: str, detail: str) -> Finding:
    kind = _KINDS.get(index_type, FindingKind.INDEX)
    return Finding(kind, path, detail, column, index_type if kind is FindingKind.INDEX else "")
