"""Bundles: the indexes and statistics of many data files in one Puffin file.

| module       |                                                                      |
|--------------|----------------------------------------------------------------------|
| `format`     | kinds of payloads; names of blobs and properties; the footer's CRC   |
| `directory`  | payloads in blocks with checksums, and which files have one          |
| `statistics` | min/max, nulls and NaN of a column                                   |
| `files`      | the table of the data files                                          |
| `columns`    | pages and schemas of data files, packed                              |
| `spool`      | payloads that wait for the others of their kind                      |
| `writer`     | write a bundle file by file                                          |
| `merging`    | choose the bundles to merge, and merge them                          |
| `payloads`   | payloads of one kind, checked as they are read                       |
| `reader`     | open one bundle, or many                                             |
| `bundle_set` | all bundles of a table compared with its files: what is fresh        |
| `probing`    | probe the bloom filters and bitmaps of many files at once            |

The bytes are described in docs/reference/bundle-format.md. Bundles know no file system, no SQL and
no Spark.
"""

from __future__ import annotations

from alcid.index.bundle.bundle_set import BundleSet
from alcid.index.bundle.files import FileEntry, FileTable, Statistics
from alcid.index.bundle.format import PayloadKind
from alcid.index.bundle.merging import (
    MergeCandidate,
    MergePlan,
    choose_bundles,
    merge,
    plan_merge,
)
from alcid.index.bundle.payloads import (
    CheckedSource,
    Coverage,
    Extents,
    Series,
    State,
    prefetch,
    use_few_sources,
)
from alcid.index.bundle.probing import probe, without_keys
from alcid.index.bundle.reader import Bundle, open_bundles
from alcid.index.bundle.statistics import ColumnStatistics
from alcid.index.bundle.writer import BundleWriter, SpooledBundle

__all__ = [
    "Bundle",
    "BundleSet",
    "BundleWriter",
    "CheckedSource",
    "ColumnStatistics",
    "Coverage",
    "Extents",
    "FileEntry",
    "FileTable",
    "MergeCandidate",
    "MergePlan",
    "PayloadKind",
    "Series",
    "SpooledBundle",
    "State",
    "Statistics",
    "choose_bundles",
    "merge",
    "open_bundles",
    "plan_merge",
    "prefetch",
    "probe",
    "use_few_sources",
    "without_keys",
]
