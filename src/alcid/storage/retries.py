"""Retries: which errors are transient, how long to wait, and which error is raised in the end."""

from __future__ import annotations

import errno
import logging
import math
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from alcid.errors import AlcidError, FileGoneError, StorageError

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
_ARROW_TRANSIENT = {
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
    """How often a failed request is made, and how long that may take.

    Before the second attempt it waits for `wait` seconds, before each further one for twice as
    long, up to half less by chance, so that many readers do not come back at the same moment.
    """

    tries: int = 4
    wait: float = 0.1
    limit: float = 60.0
    """Seconds after which no attempt is made; one that runs is not cut off."""
    contact: float = 5.0
    """The same for a server that has never answered: its address is likely wrong."""

    def at_first(self) -> Retry:
        """The policy for requests to a server that has not answered so far."""
        return replace(self, limit=min(self.limit, self.contact))


class ShortReadError(OSError):
    """Fewer bytes than were requested."""


class Lister:
    """Lists through a client that retries each page, once the server has answered.

    Such clients wait for seconds between their attempts. For a server that is not there they would
    make all of them, and again with each attempt at the listing itself.
    """

    def __init__(self, once: Any, several: Any, ask: Callable[[Any], object]) -> None:
        """Take two clients of a server.

        Args:
            once: Requests each page once.
            several: Retries a page that fails.
            ask: A small request, to see whether the server answers.
        """
        self._once, self._several, self._ask = once, several, ask
        self._has_asked = self._has_answered = False

    def run(self, listing: Callable[[Any], _Result]) -> _Result:
        """Call with one of the clients, whose errors are raised as they are."""
        if self._has_asked and not self._has_answered:
            try:
                self._ask(self._once)
            except Exception as error:
                if is_transient(error):
                    raise
            self._has_answered = True  # if only that it gives no answer to that
        self._has_asked = True
        listed = listing(self._several if self._has_answered else self._once)
        self._has_answered = True
        return listed


def retry(
    call: Callable[[], _Result],
    *,
    on: Callable[[Exception], bool] | type[Exception] | tuple[type[Exception], ...],
    attempts: int,
    wait: float = 0.0,
    longest_wait: float = math.inf,
    limit: float = math.inf,
    before_retry: Callable[[], object] | None = None,
) -> _Result:
    """Call until it succeeds, fails for good, or has failed too often; the last error is raised.

    >>> outcomes = iter([TimeoutError(), TimeoutError(), None])
    >>> def call() -> str:
    ...     if error := next(outcomes):
    ...         raise error
    ...     return "done"
    >>> retry(call, on=TimeoutError, attempts=3)
    'done'

    Args:
        call: Does everything that an attempt takes, such as looking at the newest snapshot.
        on: The errors after which it is called again.
        attempts: How often it is called at most.
        wait: Seconds before the second attempt, twice as many before each further one; up to half
            less by chance, so that many callers do not come back at the same moment.
        longest_wait: Seconds that no wait exceeds.
        limit: Seconds after which it is not called again; an attempt is never cut off.
        before_retry: Is called before each further attempt.
    """
    begin = time.monotonic()
    for attempt in range(1, attempts + 1):
        try:
            return call()
        except Exception as error:
            again = isinstance(error, on) if isinstance(on, type | tuple) else on(error)
            if not again or attempt == attempts or time.monotonic() - begin + wait > limit:
                raise
        if wait:
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, longest_wait)
        if before_retry is not None:
            before_retry()
    raise AssertionError("the last attempt returns or raises")


def retry_request(
    call: Callable[[], _Result],
    *,
    problem: str,
    file: str,
    policy: Retry,
    redact: Callable[[str], str],
    on_retry: Callable[[], None],
) -> _Result:
    """Make a request of a file system, again after errors that are transient.

    Raises:
        FileGoneError: The file is not there.
        StorageError: Any other failure: `problem` says what failed, `redact` removes secrets.
    """
    attempts = 0

    def attempt() -> _Result:
        nonlocal attempts
        attempts += 1
        return call()

    def is_retried(error: Exception) -> bool:
        if isinstance(error, AlcidError) or is_gone(error) or not is_transient(error):
            return False
        text = redact(f"{type(error).__name__}: {error}")
        _log.debug("%s: %s, attempt %d: %s", file, problem, attempts, text)
        return True

    try:
        return retry(
            attempt,
            on=is_retried,
            attempts=policy.tries,
            wait=policy.wait,
            limit=policy.limit,
            before_retry=on_retry,
        )
    except AlcidError:
        raise
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own
        text = f"{type(error).__name__}: {error}"
        redacted = redact(text)
        # A cause is printed with the error, so it is left out if it has a secret in it.
        cause = error if redacted == text else None
        if is_gone(error):
            raise FileGoneError(f"{problem}: no such file or folder", file=file) from cause
        raise StorageError(f"{problem}: {redacted}", file=file, tries=attempts) from cause


def is_gone(error: BaseException) -> bool:
    """Whether an error says that a file does not exist."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return True
    arrow = _ARROW_S3.search(str(error))
    return (arrow is not None and arrow[1] in _ARROW_GONE) or _status(error) == 404


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later.

    >>> is_transient(TimeoutError()), is_transient(PermissionError())
    (True, False)
    >>> is_transient(OSError("AWS Error SLOW_DOWN during GetObject operation: slow down"))
    True
    """
    status = _status(error)
    if status is not None:
        return status in {408, 425, 429} or status >= 500
    for cause in _causes(error):
        if isinstance(cause, ConnectionError | ShortReadError | TimeoutError):
            return True
        if not _CLASSES.isdisjoint(kind.__name__ for kind in type(cause).__mro__):
            return True
        if isinstance(cause, OSError) and cause.errno in _ERRNOS:
            return True
    arrow = _ARROW_S3.search(str(error))
    return arrow is not None and arrow[1] in _ARROW_TRANSIENT


def _status(error: BaseException) -> int | None:
    """The HTTP status behind an error: botocore's, aiohttp's, gcsfs's, or in Arrow's text."""
    for cause in _causes(error):
        response = getattr(cause, "response", None)
        status = (
            response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(response, dict)
            else getattr(cause, "status", getattr(cause, "code", None))
        )
        if isinstance(status, int) and 400 <= status < 600 and not _is_payload(cause):
            return status
    arrow = _ARROW_S3.search(str(error))
    return int(arrow[2]) if arrow and arrow[2] else None


def _is_payload(error: BaseException) -> bool:
    """Whether it is aiohttp's error for a body cut short, which calls itself a status 400."""
    return any(kind.__name__ == "BadHttpMessage" for kind in type(error).__mro__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those behind it."""
    cause: BaseException | None = error
    for _ in range(8):  # a chain with a cycle would never end
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
