"""An ORC file of one stripe, made of a stripe of another: new footers behind the old file.

Arrow takes footers as they are. Where it has to read data otherwise than they say, it is given

    the file as it is | nothing | stripe footer | footer | postscript | u8 its length

of which the footer names a single stripe: its streams stay where they are, and its own footer lies
behind the old end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alcid.formats.source import Source
from alcid.orc_file.compression import plain_chunks
from alcid.orc_file.footer import Stripe
from alcid.orc_file.protobuf import Message, encode_message
from alcid.orc_file.tail import Tail

__all__ = ["LongerSource", "one_stripe_file"]

_PADDING = 16 << 10  # Arrow reads so many bytes at the end of a file, to find the footer


class LongerSource:
    """A file with bytes behind its end."""

    def __init__(self, source: Source, more: bytes) -> None:
        """Take a file, and what follows it."""
        self._source, self.more = source, more
        self.name, self.size = source.name, source.size + len(more)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        end = self._source.size
        inside = max(0, min(length, end - offset))
        begin = max(0, offset - end)
        found = self._source.read(offset, inside) if inside else b""
        return found + self.more[begin : begin + length - inside]


def one_stripe_file(
    source: Source,
    tail: Tail,
    stripe: Stripe,
    stripe_footer: Iterable[tuple[int, int | bytes]],
    types: Sequence[bytes] | None = None,
) -> LongerSource:
    """A file that has one stripe.

    Args:
        source: The file that has the stripe.
        tail: Its footers.
        stripe: The stripe.
        stripe_footer: The fields of its new footer.
        types: The new columns; by default, as they are.
    """
    postscript = tail.postscript
    how = postscript.codec, postscript.block_size
    own = plain_chunks(encode_message(stripe_footer), *how)
    begin = source.size + _PADDING
    place = (
        (1, stripe.offset),
        (2, stripe.index_length),
        (3, begin - stripe.offset - stripe.index_length),
        (4, len(own)),
        (5, stripe.rows),
    )
    known = tail.footer_message(source.name)
    # The stripes, the types, the rows and the statistics are others.
    kept = [(field, value) for field, value in known if field not in (3, 4, 6, 7)]
    columns = [(4, one) for one in (known.parts(4) if types is None else types)]
    fields = [*kept, (3, encode_message(place)), *columns, (6, stripe.rows)]
    footer = plain_chunks(encode_message(fields), *how)
    written = Message(tail.data[-postscript.length : -1], source.name)
    others = [(field, value) for field, value in written if field not in (1, 5)]
    end = encode_message([(1, len(footer)), (5, 0), *others])
    return LongerSource(source, bytes(_PADDING) + own + footer + end + bytes([len(end)]))
