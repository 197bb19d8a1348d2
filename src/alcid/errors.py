"""The one error family: every exception and warning that Alcid raises on purpose.

Each class also inherits the builtin that a caller would catch without knowing Alcid.
"""

from __future__ import annotations

from typing import TypeVar

from alcid._text import printable

__all__ = [
    "AlcidError",
    "AlcidWarning",
    "ChecksumError",
    "ColumnError",
    "ConflictError",
    "DamagedIndexWarning",
    "EvaluationError",
    "FileGoneError",
    "FormatError",
    "LimitError",
    "LiteralError",
    "NameTakenError",
    "OptionError",
    "PredicateError",
    "SparkNeededError",
    "StorageError",
    "UnsupportedError",
    "require",
]


class AlcidError(Exception):
    r"""Base of every error that Alcid raises on purpose.

    Its message is one line, whatever names the file that it tells of has.

    >>> print(AlcidError("a.index: unknown index \x1b[2J\n"))
    a.index: unknown index \x1b[2J\n
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class FormatError(AlcidError, ValueError):
    """Bytes that are not what the format says.

    >>> print(FormatError("bad magic", file="a.index", offset=0, found="0x1", expected="0x2"))
    a.index: bad magic at offset 0: found 0x1, expected 0x2
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        offset: int | None = None,
        found: object = None,
        expected: object = None,
    ) -> None:
        """Compose the message from whatever is known."""
        self.problem, self.file, self.offset = problem, file, offset
        self.found, self.expected = found, expected
        where = problem if offset is None else f"{problem} at offset {offset}"
        details = [
            f"{label} {value}"
            for label, value in (("found", found), ("expected", expected))
            if value is not None
        ]
        text = f"{where}: {', '.join(details)}" if details else where
        super().__init__(text if file is None else f"{file}: {text}")

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip from an executor, which pickles exceptions by their arguments."""
        return (
            _restore,
            (type(self), self.problem, self.file, self.offset, self.found, self.expected),
        )


def _restore(
    kind: type[FormatError],
    problem: str,
    file: str | None,
    offset: int | None,
    found: object,
    expected: object,
) -> FormatError:
    return kind(problem, file=file, offset=offset, found=found, expected=expected)


class ChecksumError(FormatError):
    """Bytes whose stored checksum differs from the computed one."""


class UnsupportedError(AlcidError, TypeError):
    """A type, index or version that the format does not take."""


T = TypeVar("T")


def require(value: object, kind: type[T], what: str) -> T:
    """`value`, if it is of the class that is needed.

    >>> require([1], dict, "options")
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: options: found list, expected dict
    """
    if not isinstance(value, kind):
        raise UnsupportedError(f"{what}: found {type(value).__name__}, expected {kind.__name__}")
    return value


class LimitError(AlcidError, OverflowError):
    """More rows or bytes than the format can hold."""


class OptionError(AlcidError, ValueError):
    """An index option that is unknown, misplaced or has a bad value."""


class ColumnError(AlcidError, LookupError):
    """A column that does not exist, or a name that fits more than one."""


class PredicateError(AlcidError, ValueError):
    """A predicate that cannot be understood."""


class SparkNeededError(PredicateError):
    """A predicate of which a part can be evaluated by Spark only."""


class EvaluationError(PredicateError, ArithmeticError):
    """A row for which a predicate has no value: an overflow, a division by zero, a failed cast."""


class LiteralError(PredicateError, TypeError):
    """A literal that has no meaning for the type of its column."""


class StorageError(AlcidError, OSError):
    """A file that could not be read, listed, written or removed.

    >>> print(StorageError("could not be read: timed out", file="s3://lake/a.parquet", tries=4))
    s3://lake/a.parquet: could not be read: timed out (tried 4 times)
    """

    def __init__(self, problem: str, *, file: str | None = None, tries: int = 1) -> None:
        """Compose the message from whatever is known."""
        self.problem, self.file, self.tries = problem, file, tries
        text = problem if tries == 1 else f"{problem} (tried {tries} times)"
        super().__init__(text if file is None else f"{file}: {text}")

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip from an executor, which pickles exceptions by their arguments."""
        return _restore_storage, (type(self), self.problem, self.file, self.tries)


def _restore_storage(
    kind: type[StorageError], problem: str, file: str | None, tries: int
) -> StorageError:
    return kind(problem, file=file, tries=tries)


class FileGoneError(StorageError, FileNotFoundError):
    """A file that is not there any more, or not as it was listed: list again, then plan again."""


class ConflictError(AlcidError, RuntimeError):
    """A commit that does not go with what others have committed meanwhile: plan it again."""


class NameTakenError(StorageError, FileExistsError):
    """A file of that name exists, with other bytes; nothing is ever replaced."""


class AlcidWarning(UserWarning):
    """Base of every warning that Alcid gives."""


class DamagedIndexWarning(AlcidWarning):
    """An index that could not be used, so that its file is kept."""
