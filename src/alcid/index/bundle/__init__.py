"""Bundles: the indexes and statistics of many data files in one Puffin file.

| the format     |                                                               |
|----------------|---------------------------------------------------------------|
| `kinds`        | what payloads there are; names of blobs and properties        |
| `blocks`       | payloads in small blocks, each with its checksum              |
| `directory`    | which files have a payload of a kind, and where               |
| `statistics`   | least and greatest values of a column, nulls, NaN             |
| `files`        | the table of the files                                        |
| `footer_check` | the checksum that a Puffin footer does not have               |

| writing        |                                                               |
|----------------|---------------------------------------------------------------|
| `assembly`     | the blobs of a bundle, in their order                         |
| `writer`       | a bundle, file by file                                        |
| `merging`      | many bundles to one                                           |

| reading        |                                                               |
|----------------|---------------------------------------------------------------|
| `kept`         | a source with parts in memory                                 |
| `checked`      | one payload as a source that checks what it gives             |
| `series`       | all payloads of a kind in a bundle                            |
| `reader`       | one bundle                                                    |
| `opening`      | many bundles, in two rounds of reads                          |
| `coverage`     | which files of a table have a payload of a kind               |
| `arrow_stream` | Arrow streams without compressed buffers                      |
| `bundle_set`   | all bundles of a table, against its files: what is fresh      |
| `filters`      | the bloom filters of some files, in columns                   |
| `bloom`        | the bloom filters of many files, in one round of reads        |
| `searching`    | the bitmap indexes of many files, searched for keys           |
| `byte_regions` | what each byte of its blobs means, for `alcid.inspect.byte_map`       |

The bytes are described in docs/reference/bundle-format.md. Bundles know no file system, no SQL and
no Spark.
"""

from __future__ import annotations

from alcid.index.bundle.bundle_set import BundleSet
from alcid.index.bundle.files import FileEntry, FileTable, Statistics
from alcid.index.bundle.format import PayloadKind
from alcid.index.bundle.merging import MergeCandidate, choose_bundles, merge
from alcid.index.bundle.payloads import CheckedSource, Coverage, Series, State, prefetch
from alcid.index.bundle.probing import probe, without_keys
from alcid.index.bundle.reader import Bundle, open_bundles
from alcid.index.bundle.statistics import ColumnStatistics
from alcid.index.bundle.writer import BundleWriter

__all__ = [
    "Bundle",
    "BundleSet",
    "BundleWriter",
    "CheckedSource",
    "ColumnStatistics",
    "Coverage",
    "FileEntry",
    "FileTable",
    "MergeCandidate",
    "PayloadKind",
    "Series",
    "State",
    "Statistics",
    "choose_bundles",
    "merge",
    "open_bundles",
    "prefetch",
    "probe",
    "without_keys",
]
