"""How much memory the work on buckets takes: bounds that do not grow with the table.

| bound            | what is below it                                | what is beyond it          |
|------------------|-------------------------------------------------|----------------------------|
| `buffered_bytes` | rows of a channel that wait to be written       | is sorted and spilled      |
| `key_bytes`      | keys of files that are compared with each other | is cut by key ranges       |
| `hash_bytes`     | hash indexes that keys are looked up in         | is cut by ranges of hashes |

A task takes about three times `buffered_bytes` while it sorts them: as they came, in one piece, and
in the order of their keys. Besides, it has one file that it writes (`MAX_BUFFERED_BYTES` of
`parquet_writer`) and, where files are merged, a row group of each. Deletion vectors are in memory
whole: at most a bit for each row of a bucket. So are the hashes of the keys of one bucket, of which
there are about `dynamic-bucket.target-row-num`, and those that are new to a channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_BATCHES: Final = 64


@dataclass(frozen=True, slots=True)
class MemoryBounds:
    """The bounds of one task. They pickle with its work, so that all tasks have the same."""

    buffered_bytes: int = 128 << 20
    """Rows as Arrow has them."""
    key_bytes: int = 128 << 20
    """Keys, sequence numbers and row kinds of all files that are merged."""
    hash_bytes: int = 64 << 20
    """Hash indexes as they are stored, 4 bytes a key: 16.8 million keys."""
    most_merged: int = 32
    """Spilled runs that are merged at a time; more are merged in several passes."""

    @property
    def batch_bytes(self) -> int:
        """The rows of a spilled batch: a batch of each run that is merged fits the buffer twice."""
        return max(self.buffered_bytes // _BATCHES, 1)


DEFAULT_MEMORY: Final = MemoryBounds()
