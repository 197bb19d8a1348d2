"""Paimon's hash index: the hashes of all keys of one bucket, for tables with dynamic buckets.

    hash     i32, big-endian, for each key
    ...

There is no head, no count and no checksum. It is a set: the order means nothing, Paimon's Java
writes that of a hash map, here it is ascending. A bucket has one such file, which is always written
anew and in whole, and only if hashes were added; no hash is ever removed.

It answers which bucket a key belongs to (`alcid.formats.buckets.assigner`), not whether a row with
that key exists: deleted keys stay, and different keys may share a hash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from alcid._arrays import BoolArray, Int32Array, changes
from alcid.errors import FormatError, LimitError, UnsupportedError
from alcid.formats.source import BytesSource, Source

if TYPE_CHECKING:
    import pyarrow as pa

Hashes: TypeAlias = "npt.NDArray[np.integer[Any]] | pa.Array | pa.ChunkedArray | Iterable[int]"
"""Hashes in any order, as `hash_rows` gives them; or Python's integers that fit 32 bits."""

_STORED = np.dtype(">i4")
_SIZE = _STORED.itemsize
_CHUNK = 8 << 20  # bytes of a file that are in memory at a time, where not all are wanted


class HashIndex:
    """The hashes of the keys of one bucket; it does not change.

    >>> index = HashIndex([7, -1, 7])
    >>> index.to_bytes().hex(" ", 4)
    'ffffffff 00000007'
    >>> index.union([3]).hashes.tolist()
    [-1, 3, 7]
    """

    __slots__ = ("_duplicates", "_hashes")

    def __init__(self, hashes: Hashes = ()) -> None:
        """Keep each of the hashes once.

        Raises:
            LimitError: A number that does not fit 32 bits.
            UnsupportedError: Other things than integers.
        """
        ordered = np.array(hash_array(hashes))
        if not np.all(ordered[1:] > ordered[:-1]):  # our own files are ascending
            ordered.sort()
            ordered = ordered[changes(ordered)]
        self._hashes: Int32Array = ordered
        self._hashes.flags.writeable = False
        self._duplicates = 0

    @property
    def hashes(self) -> Int32Array:
        """Ascending, each once."""
        return self._hashes

    @property
    def duplicates(self) -> int:
        """How many the file held that were in it already; a writer leaves none."""
        return self._duplicates

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str = "<bytes>"
    ) -> HashIndex:
        """Read a file.

        Raises:
            FormatError: Its size is not a multiple of 4.

        >>> HashIndex.from_bytes(bytes.fromhex("00000007 ffffffff 00000007")).duplicates
        1
        """
        data = BytesSource(data).data
        _check_size(len(data), name)
        stored = np.frombuffer(data, _STORED)
        index = cls(stored)
        index._duplicates = len(stored) - len(index)
        return index

    def to_bytes(self) -> bytes:
        """The file of these hashes."""
        return self.hashes.astype(_STORED).tobytes()

    def contains(self, hashes: Hashes) -> BoolArray:
        """Which of the hashes are in the index.

        >>> HashIndex([1, 2]).contains([2, 3, 1]).tolist()
        [True, False, True]
        """
        asked = hash_array(hashes)
        order = np.argsort(asked)  # neighbours are found near each other, and so much faster
        ordered = asked[order]
        position = np.searchsorted(self.hashes, ordered)
        contained = np.zeros(len(asked), bool)
        inside = position < len(self.hashes)
        contained[order[inside]] = self.hashes[position[inside]] == ordered[inside]
        return contained

    def __contains__(self, value: object) -> bool:
        """Whether one hash is in the index."""
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            return False
        position = int(np.searchsorted(self._hashes, value))
        return position < len(self) and bool(self._hashes[position] == value)

    def __or__(self, other: HashIndex) -> HashIndex:
        """The same as `union`."""
        return self.union(other)

    def union(self, hashes: Hashes | HashIndex) -> HashIndex:
        """An index with these hashes as well."""
        more = hashes.hashes if isinstance(hashes, HashIndex) else hash_array(hashes)
        return HashIndex(np.concatenate((self.hashes, more)))

    def __len__(self) -> int:
        return len(self.hashes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashIndex):
            return NotImplemented
        return np.array_equal(self.hashes, other.hashes)

    def __reduce__(self) -> tuple[object, ...]:
        """Stay unchangeable on the other side."""
        return HashIndex.from_bytes, (self.to_bytes(),)

    def __hash__(self) -> int:
        return hash(self.hashes.tobytes())

    def __repr__(self) -> str:
        return f"<HashIndex of {len(self)} hashes>"


def read_hashes_between(
    source: Source, least: int, greatest: int, *, chunk: int = _CHUNK
) -> Int32Array:
    """The hashes of a file that are in a range, ascending, each once.

    Files are in no order that could be relied on, so all of it is read, but only a chunk is in
    memory besides the hashes of the range.

    Args:
        source: The file.
        least: The first hash of the range.
        greatest: The last one.
        chunk: Bytes to read at a time.

    Raises:
        FormatError: Its size is not a multiple of 4.

    >>> file = BytesSource(HashIndex([7, -1, 3]).to_bytes())
    >>> read_hashes_between(file, 0, 7).tolist()
    [3, 7]
    """
    _check_size(source.size, source.name)
    step = max(chunk - chunk % _SIZE, _SIZE)
    parts = [np.zeros(0, np.int32)]
    for offset in range(0, source.size, step):
        data = source.read(offset, min(step, source.size - offset))
        hashes = np.frombuffer(data, _STORED).astype(np.int32)
        parts.append(hashes[(hashes >= least) & (hashes <= greatest)])
    return HashIndex(np.concatenate(parts)).hashes


def _check_size(size: int, name: str) -> None:
    if size % _SIZE:
        raise FormatError(
            "truncated hash",
            file=name,
            offset=size - size % _SIZE,
            found=f"{size % _SIZE} bytes",
            expected=_SIZE,
        )


def hash_array(hashes: Hashes | int) -> Int32Array:
    """Hashes as a NumPy array, or one hash as an array without a dimension.

    Raises:
        LimitError: A number that does not fit 32 bits.
        UnsupportedError: Other things than integers.

    >>> hash_array(range(3))
    array([0, 1, 2], dtype=int32)
    """
    is_array = hasattr(hashes, "__array__") and not isinstance(hashes, np.generic)
    listed = list(hashes) if isinstance(hashes, Iterable) and not is_array else hashes
    if isinstance(hashes, bytes | bytearray | memoryview):
        raise UnsupportedError("hashes: found bytes: from_bytes reads those")
    if getattr(hashes, "null_count", 0):
        raise UnsupportedError("hashes: found nulls, expected int32, as hash_rows gives them")
    array = np.asarray(listed)
    if array.ndim > 1:
        raise UnsupportedError(f"hashes: found {array.ndim} dimensions, expected one")
    if array.dtype.kind == "i" and array.dtype.itemsize == _SIZE:
        return array.astype(np.int32, copy=False)
    if not array.size:
        return np.zeros(0, np.int32)
    if is_array or array.dtype.kind not in "iu":  # keys themselves, perhaps
        raise UnsupportedError(
            f"hashes: found {array.dtype}, expected int32, as hash_rows gives them"
        )
    limits = np.iinfo(np.int32)
    for extreme in (int(array.min()), int(array.max())):
        if not limits.min <= extreme <= limits.max:
            raise LimitError(
                f"hashes: found {extreme}, expected {limits.min} to {limits.max}: they are signed"
            )
    return array.astype(np.int32)
