"""Which bucket, or which assigner of buckets, a hash goes to: Paimon's formulas and options.

With a fixed number of buckets the hash of a key is enough: `fixed_bucket`. With dynamic buckets
someone has to remember where each hash went; `Routing` shares that work among many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from alcid._arrays import Int32Array, UInt32Array
from alcid.errors import OptionError
from alcid.formats.hash_index import Hashes, hash_array

MOST_BUCKETS: Final = 1 << 15
"""Numbers of buckets are kept in 16 bits with a sign."""

_PREFIX: Final = "dynamic-bucket."
_MAX_INT: Final = (1 << 31) - 1
_MAX_LONG: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """Paimon's `dynamic-bucket.*` options.

    Raises:
        OptionError: A value that the option does not take.

    >>> BucketOptions(max_buckets=0)
    Traceback (most recent call last):
    alcid.errors.OptionError: dynamic-bucket.max-buckets: found 0, expected -1, or 1 to 32768
    """

    target_row_num: int = 2_000_000
    """A bucket with so many keys is full."""
    max_buckets: int = -1
    """How many buckets a partition may have; -1 for no limit."""
    initial_buckets: int | None = None
    """How many assigners a partition has at most."""
    assigner_parallelism: int | None = None
    """How many channels there are; by default as many as the engine has."""

    def __post_init__(self) -> None:
        if self.max_buckets != -1 or type(self.max_buckets) is not int:
            self._require("max_buckets", MOST_BUCKETS, "-1, or ")
        self._require("target_row_num", _MAX_LONG)
        for name in ("initial_buckets", "assigner_parallelism"):
            if getattr(self, name) is not None:
                self._require(name, _MAX_INT)

    def _require(self, name: str, most: int, otherwise: str = "") -> None:
        value = getattr(self, name)
        if type(value) is not int or not 1 <= value <= most:
            raise OptionError(f"{_key(name)}: found {value}, expected {otherwise}1 to {most}")

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> BucketOptions:
        """Read table options; of keys that do not start with `dynamic-bucket.`, only `bucket`.

        Raises:
            OptionError: An unknown `dynamic-bucket.` key, a bad value, or a `bucket` other than
                -1: the table has a fixed number of them (`fixed_bucket`).

        >>> BucketOptions.parse({"bucket": "-1", "dynamic-bucket.max-buckets": "8"}).max_buckets
        8
        """
        known = {_key(field.name): field.name for field in fields(cls)}
        values = {}
        if str(fixed := options.get("bucket", -1)).strip() != "-1":
            raise OptionError(f"bucket: found {fixed!r}, expected -1 for dynamic buckets")
        for key, value in options.items():
            if not key.startswith(_PREFIX):
                continue
            if key not in known:
                raise OptionError(f"{key}: no such option, expected {' or '.join(known)}")
            if not re.fullmatch(r"\s*-?[0-9]{1,19}\s*", str(value)):
                raise OptionError(f"{key}: found {value!r}, expected a whole number")
            values[known[key]] = int(value)
        return cls(**values)


def _key(name: str) -> str:
    return _PREFIX + name.replace("_", "-")


def fixed_bucket(hashes: Hashes | int, buckets: int) -> Int32Array:
    """The bucket of each hash in a table of a fixed number of buckets.

    >>> fixed_bucket([7, -7, -(2**31)], 4).tolist()
    [3, 3, 0]
    """
    return _remainder(hashes, buckets).astype(np.int32)


def _remainder(hashes: Hashes | int, divisor: int) -> UInt32Array:
    """The remainder without its sign, which in Java is that of the hash."""
    if not 1 <= divisor <= _MAX_INT:
        raise OptionError(f"found {divisor} to share hashes among, expected 1 to {_MAX_INT}")
    sizes = np.abs(hash_array(hashes)).view(np.uint32)  # so that -2^31 is 2^31
    return sizes % np.uint32(divisor)


def assigner_of(
    partition_hashes: Hashes | int, key_hashes: Hashes | int, channels: int, assigners: int
) -> Int32Array:
    """The channel, 0 to `channels` - 1, that assigns a bucket to each key, as Paimon has it.

    Each partition starts at a channel of its own and goes on over `assigners` of them. See
    `Routing` for numbers that must not go together.

    >>> assigner_of(2, [0, 1, 2, 3], channels=5, assigners=3).tolist()
    [2, 3, 4, 2]
    """
    starts = _remainder(partition_hashes, channels)
    positions = starts + _remainder(key_hashes, assigners)
    return (positions % np.uint32(channels)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Routing:
    """How the keys of all partitions are shared out among channels (tasks, say).

    The keys of one partition go to `assigners` neighbouring channels. Channel c owns those buckets
    that leave the same remainder as c when divided by `assigners`, and puts new keys into no other.

    The number of assigners must divide that of channels. Paimon takes any two: with 5 channels and
    3 assigners, the keys of a partition that starts at channel 4 go to the channels 4, 0 and 1.
    Of these, 4 and 1 leave the remainder 1 and own the same buckets: both fill them up, and a
    bucket has two writers unless its rows are brought together once more.

    Raises:
        OptionError: Numbers that do not go together.

    >>> Routing(5, 3)
    Traceback (most recent call last):
    alcid.errors.OptionError: routing: found 5 channels and 3 assigners, expected a multiple of 3
    """

    channels: int = 1
    assigners: int = 1

    def __post_init__(self) -> None:
        if self.assigners < 1 or self.channels < 1 or self.channels % self.assigners:
            raise OptionError(
                f"routing: found {self.channels} channels and {self.assigners} assigners, "
                f"expected a multiple of {max(self.assigners, 1)}"
            )

    @classmethod
    def plan(cls, options: BucketOptions, default_parallelism: int) -> Routing:
        """The numbers that the options ask for, with as few channels less as the rule needs.

        Args:
            options: Of the table.
            default_parallelism: Channels if `dynamic-bucket.assigner-parallelism` is not set.

        >>> Routing.plan(BucketOptions(initial_buckets=3), 5)
        Routing(channels=3, assigners=3)
        """
        channels = options.assigner_parallelism or default_parallelism
        if options.max_buckets != -1:  # so that everyone owns a bucket
            channels = min(channels, options.max_buckets)
        assigners = min(options.initial_buckets or channels, channels)
        return cls(channels - channels % max(assigners, 1), assigners)

    def channel(self, partition_hashes: Hashes | int, key_hashes: Hashes | int) -> Int32Array:
        """The channel of each key.

        >>> Routing(4, 2).channel([0, 1, 3], [6, 6, -7]).tolist()
        [0, 1, 0]
        """
        return assigner_of(partition_hashes, key_hashes, self.channels, self.assigners)

    def owns(self, channel: int, bucket: int) -> bool:
        """Whether a channel puts new keys into a bucket.

        >>> [bucket for bucket in range(9) if Routing(8, 4).owns(6, bucket)]
        [2, 6]
        """
        return bucket % self.assigners == channel % self.assigners
