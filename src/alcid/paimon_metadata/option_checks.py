"""Options that users write: those of a new table, and what `file-index.*` asks to build."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from alcid.errors import OptionError
from alcid.options import did_you_mean, parse_options
from alcid.paimon_metadata.option_keys import ALIASES, HARMLESS, harmless
from alcid.paimon_metadata.option_refusals import REFUSALS, refusal_of
from alcid.paimon_metadata.table_options import HONOURED

__all__ = ["check_new_options", "file_index_options", "is_known"]

_BUCKETS: Final = (
    "dynamic-bucket.assigner-parallelism",
    "dynamic-bucket.initial-buckets",
    "dynamic-bucket.max-buckets",
    "dynamic-bucket.target-row-num",
)
_COLUMN_STATS: Final = re.compile(r"fields\..+\.stats-mode")
_INDEX_TABLE_KEYS: Final = ("file-index.in-manifest-threshold", "file-index.read.enabled")


def check_new_options(options: Mapping[str, str]) -> None:
    """Raise for an option of a new table whose key Paimon does not have, most likely misspelt.

    Raises:
        OptionError: An unknown key, or `file-index.*` options that are not in order.

    >>> check_new_options({"deletion-vector.enabled": "true"})
    Traceback (most recent call last):
    alcid.errors.OptionError: deletion-vector.enabled: no such option of Paimon; did you mean
    deletion-vectors.enabled?
    """
    for key in options:
        if key in ("primary-key", "partition"):
            raise OptionError(f"{key}: name the keys of a new table as keys, not as an option")
        if not key.startswith("file-index.") and not is_known(key):
            hint = did_you_mean(key, _all_keys())
            raise OptionError(f"{key}: no such option of Paimon{hint}")
    problems = file_index_options(options)[1]
    if problems:
        raise OptionError(problems[0])


def is_known(key: str) -> bool:
    """Whether Paimon has an option of this key, `file-index.*` aside.

    >>> is_known("bucket"), is_known("fields.price.stats-mode"), is_known("buckets")
    (True, True, False)
    """
    return (
        key in HONOURED
        or key in _BUCKETS
        or key in ALIASES
        or harmless(key)
        or refusal_of(key) is not None
        or _COLUMN_STATS.fullmatch(key) is not None
    )


def _all_keys() -> list[str]:
    passed_over = [key for keys in HARMLESS.values() for key in keys.split()]
    return [*HONOURED, *REFUSALS, *_BUCKETS, *passed_over]


def file_index_options(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The `file-index.*` options that say what to build, and what is wrong with the others.

    Paimon passes over keys that it does not know, so that a table may have some: they are to be
    told to the user, and are no reason to build nothing.

    >>> file_index_options({"file-index.bitmap.columns": "a", "file-index.bitmap.version": "1"})
    ({'file-index.bitmap.columns': 'a'},
     ['file-index.bitmap.version: use file-index.bitmap.<column>.version'])
    """
    asked = [key for key in options if key.startswith("file-index.")]
    usable: dict[str, str] = {}
    problems = []
    # Options of columns are right or wrong by the lists of columns: these first.
    for key in sorted(asked, key=lambda key: (not key.endswith(".columns"), key)):
        if key in _INDEX_TABLE_KEYS:
            continue
        try:
            parse_options(usable | {key: options[key]})
        except OptionError as error:
            problems.append(str(error))
        else:
            usable[key] = options[key]
    return usable, problems
