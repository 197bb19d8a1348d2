"""Trying again: which failures pass, how long to wait, and the error when it was in vain."""

from __future__ import annotations

import errno
import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from alcid.errors import AlcidError, FileGoneError, StorageError

__all__ = ["Lister", "Retry", "ShortReadError", "is_gone", "is_passing", "persist"]

_Result = TypeVar("_Result")
_log = logging.getLogger("alcid.storage")

_ERRNOS = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTUNREACH,
    errno.ENETDOWN,
    errno.ENETRESET,
    errno.ENETUNREACH,
    errno.EPIPE,
    errno.ETIMEDOUT,
}
# By name, so that none of the libraries has to be installed: aiohttp's, botocore's, http.client's.
_CLASSES = {
    "ClientConnectionError",
    "ClientPayloadError",
    "HTTPClientError",
    "IncompleteRead",
    "IncompleteReadError",
}
# Arrow gives its errors of S3 as text only.
_ARROW_S3 = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during")
_ARROW_PASSING = {
    "INTERNAL_FAILURE",
    "NETWORK_CONNECTION",
    "REQUEST_TIMEOUT",
    "SERVICE_UNAVAILABLE",
    "SLOW_DOWN",
    "THROTTLING",
}
_ARROW_GONE = {"NO_SUCH_BUCKET", "NO_SUCH_KEY", "RESOURCE_NOT_FOUND"}


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed request is tried, and how long that may last.

    Before the second try it waits for `wait` seconds, before each further one for twice as long, up
    to half less by chance, so that many readers do not come back at the same moment.
    """

    tries: int = 4
    wait: float = 0.1
    limit: float = 60.0
    """Seconds after which nothing more is tried; a try that runs is not cut off."""
    contact: float = 5.0
    """The same for a server that has not answered so far: its address is likely wrong."""

    def at_first(self) -> Retry:
        """What goes for requests to a server that has not answered so far."""
        return replace(self, limit=min(self.limit, self.contact))


class ShortReadError(OSError):
    """Fewer bytes than were asked for."""


class Lister:
    """Lists by a client that asks for each page several times, once the server has answered.

    Such clients wait for seconds between their tries. A server that is not there would take all of
    them, and that as often as the listing itself is tried.
    """

    def __init__(self, once: Any, several: Any, ask: Callable[[Any], object]) -> None:
        """Take two clients of a server.

        Args:
            once: Asks for each page once.
            several: Asks several times.
            ask: A small request, to see whether the server answers.
        """
        self._once, self._several, self._ask = once, several, ask
        self._has_asked = self._has_answered = False

    def run(self, listing: Callable[[Any], _Result]) -> _Result:
        """Call with one of the clients; any of its errors comes through."""
        if self._has_asked and not self._has_answered:
            try:
                self._ask(self._once)
            except Exception as error:
                if is_passing(error):
                    raise
            self._has_answered = True  # if only that it gives no answer to that
        self._has_asked = True
        found = listing(self._several if self._has_answered else self._once)
        self._has_answered = True
        return found


def persist(
    call: Callable[[], _Result],
    *,
    doing: str,
    file: str,
    retry: Retry,
    cover: Callable[[str], str],
    on_retry: Callable[[], None],
) -> _Result:
    """Call until it succeeds, fails for good, or has failed too often.

    Raises:
        FileGoneError: The file is not there.
        StorageError: Any other failure; `doing` says what of, `cover` takes secrets out of it.
    """
    begin, wait = time.monotonic(), retry.wait
    for tries in range(1, retry.tries + 1):
        try:
            return call()
        except AlcidError:
            raise
        except Exception as error:  # noqa: BLE001 - each file system has errors of its own
            text = f"{type(error).__name__}: {error}"
            covered = cover(text)
            # A cause is printed with the error, so it is left out if it tells a secret.
            cause = error if covered == text else None
            if is_gone(error):
                raise FileGoneError(f"{doing}: no such file or folder", file=file) from cause
            late = time.monotonic() - begin + wait > retry.limit
            if tries == retry.tries or late or not is_passing(error):
                raise StorageError(f"{doing}: {covered}", file=file, tries=tries) from cause
            _log.debug("%s: %s, try %d: %s", file, doing, tries, covered)
        time.sleep(wait * random.uniform(0.5, 1.0))
        wait *= 2
        on_retry()
    raise AssertionError("the last try returns or raises")


def is_gone(error: BaseException) -> bool:
    """Whether it says that a file does not exist."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return True
    arrow = _ARROW_S3.search(str(error))
    return (arrow is not None and arrow[1] in _ARROW_GONE) or _status(error) == 404


def is_passing(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later.

    >>> is_passing(TimeoutError()), is_passing(PermissionError())
    (True, False)
    >>> is_passing(OSError("AWS Error SLOW_DOWN during GetObject operation: slow down"))
    True
    """
    status = _status(error)
    if status is not None:
        return status in {408, 425, 429} or status >= 500
    for one in _causes(error):
        if isinstance(one, ConnectionError | ShortReadError | TimeoutError):
            return True
        if not _CLASSES.isdisjoint(kind.__name__ for kind in type(one).__mro__):
            return True
        if isinstance(one, OSError) and one.errno in _ERRNOS:
            return True
    arrow = _ARROW_S3.search(str(error))
    return arrow is not None and arrow[1] in _ARROW_PASSING


def _status(error: BaseException) -> int | None:
    """The HTTP status behind an error: botocore's, aiohttp's, gcsfs's, or in Arrow's text."""
    for one in _causes(error):
        response = getattr(one, "response", None)
        found = (
            response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(response, dict)
            else getattr(one, "status", getattr(one, "code", None))
        )
        if isinstance(found, int) and 400 <= found < 600 and not _is_payload(one):
            return found
    arrow = _ARROW_S3.search(str(error))
    return int(arrow[2]) if arrow and arrow[2] else None


def _is_payload(error: BaseException) -> bool:
    """Whether it is aiohttp's error for a body cut short, which calls itself a status 400."""
    return any(kind.__name__ == "BadHttpMessage" for kind in type(error).__mro__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    for _ in range(8):  # a chain that bites its tail would never end
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__
