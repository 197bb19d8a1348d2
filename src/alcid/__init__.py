"""Alcid: the index layer for lake tables.

It reads and writes Paimon's file indexes (bloom-filter, bitmap, range-bitmap, bsi) byte for byte,
and answers predicates and top-n from them.
"""

from __future__ import annotations

import logging as _logging
from importlib.metadata import version as _version

from alcid import errors, options
from alcid.errors import (
    AlcidError,
    AlcidWarning,
    ChecksumError,
    ColumnError,
    DamagedIndexWarning,
    FormatError,
    LimitError,
    LiteralError,
    OptionError,
    PredicateError,
    UnsupportedError,
)
from alcid.file_index import FileIndex
from alcid.formats.selection import Selection
from alcid.predicate import Column, Predicate, col
from alcid.types import DataType

__version__ = _version("alcid")
_logging.getLogger("alcid").addHandler(_logging.NullHandler())

__all__ = [
    "AlcidError",
    "AlcidWarning",
    "ChecksumError",
    "Column",
    "ColumnError",
    "DamagedIndexWarning",
    "DataType",
    "FileIndex",
    "FormatError",
    "LimitError",
    "LiteralError",
    "OptionError",
    "Predicate",
    "PredicateError",
    "Selection",
    "UnsupportedError",
    "col",
    "errors",
    "options",
]
