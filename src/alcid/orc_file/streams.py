"""Where the data of the columns of a stripe is, as the footer of the stripe says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError, UnsupportedError
from alcid.orc_file.compression import decompress_chunks
from alcid.orc_file.footer import PostScript, Stripe
from alcid.orc_file.protobuf import Message

__all__ = ["Streams", "parse_streams"]

Integers = npt.NDArray[np.int64]

_PRESENT = 0  # which values are null
_INDEXES = (6, 7, 8)  # row indexes and bloom filters, which are not read
_ROW = 0  # the number of the row itself; whether rows are null is always read


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """The data streams of a stripe."""

    columns: Integers
    """The column that each is of."""
    offsets: Integers
    lengths: Integers
    zone: str
    """The time zone of the writer, as it called it; empty if it is not known."""
    with_nulls: frozenset[int]
    """The columns that may have nulls."""
    message: Message
    """The fields of the footer."""

    def size(self, columns: Integers) -> int:
        """The bytes of some columns."""
        return int(self.lengths[np.isin(self.columns, columns)].sum())

    def places(self, columns: Integers) -> list[tuple[int, int]]:
        """Offset and length of each stream that is needed for some columns."""
        needed = (np.isin(self.columns, columns) | (self.columns == _ROW)) & (self.lengths > 0)
        return list(zip(self.offsets[needed].tolist(), self.lengths[needed].tolist(), strict=True))


def parse_streams(data: bytes, stripe: Stripe, postscript: PostScript, file: str) -> Streams:
    """Read the footer of a stripe.

    Raises:
        FormatError: It is damaged.
        UnsupportedError: The stripe is encrypted.
    """
    content = decompress_chunks(data, postscript.codec, postscript.block_size, file)
    message = Message(content, file)
    if message.has(4):
        raise UnsupportedError(f"{file}: an encrypted ORC stripe")
    found = [[one.number(field) for field in (1, 2, 3)] for one in message.messages(1)]
    most = stripe.index_length + stripe.data_length
    if sum(length for _, _, length in found) > most:
        raise FormatError(
            "streams longer than their stripe", file=file, offset=stripe.offset, expected=most
        )
    if any(max(numbers) > np.iinfo(np.int64).max for numbers in found):
        raise FormatError("damaged ORC stripe footer", file=file, offset=stripe.footer_offset)
    kinds, columns, lengths = np.array(found, np.int64).reshape(-1, 3).T
    offsets = stripe.offset + np.cumsum(lengths) - lengths
    data_streams = ~np.isin(kinds, _INDEXES)
    return Streams(
        columns[data_streams],
        offsets[data_streams],
        lengths[data_streams],
        "".join(message.texts(3)[-1:]),
        frozenset(columns[(kinds == _PRESENT) & (lengths > 0)].tolist()),
        message,
    )
