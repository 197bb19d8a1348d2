"""Locations, options, retries and threads, each on its own."""

from __future__ import annotations

import errno
import os
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from alcid.errors import (
    ConflictError,
    FileGoneError,
    FormatError,
    NameTakenError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.source import BytesSource
from alcid.storage import Retry, Storage, Traffic
from alcid.storage.backend import Location
from alcid.storage.options import SecretOptions, arrow_s3_options, s3fs_options
from alcid.storage.ranges import CachedSource
from alcid.storage.retries import is_gone, is_transient, retry, retry_request
from alcid.storage.threads import run_all
from alcid.storage.traffic import TrafficCounter
from alcid.testing import CountingSource


@pytest.mark.parametrize(
    ("location", "scheme", "text"),
    [
        ("/a/b/", "file", "/a/b"),
        ("/", "file", "/"),
        ("file:///a/b", "file", "/a/b"),
        ("file:/a/b/", "file", "/a/b"),
        ("file://localhost/a", "file", "/a"),
        ("file:///a%20b#c?d=e f", "file", "/a%20b#c?d=e f"),
        ("/data/s3:x", "file", "/data/s3:x"),
        ("s3://lake", "s3", "s3://lake"),
        ("s3a://lake/a b%20#?=é/", "s3", "s3://lake/a b%20#?=é"),
        ("S3N://lake/x", "s3", "s3://lake/x"),
        ("memory://x/y", "memory", "memory://x/y"),
        ("abfs://box@account.example/x", "abfs", "abfs://box@account.example/x"),
        (Path("/a/b"), "file", "/a/b"),
    ],
)
def test_locations(location: str | Path, scheme: str, text: str) -> None:
    assert Location.parse(location) == Location(scheme, text)


@pytest.mark.parametrize(
    "location",
    ["s3://key:hush@lake/x", "ftp://me:hush@host/x", "s3://", "s3:///x", "file://host/x"],
)
def test_impossible_locations(location: str) -> None:
    with pytest.raises(OptionError) as caught:
        Location.parse(location)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"key": "K", "secret": "S", "token": "T", "endpoint_url": "http://h:1", "anon": False},
        {
            "s3.access-key-id": "K",
            "s3.secret-access-key": "S",
            "s3.session-token": "T",
            "s3.endpoint": "http://h:1/",
            "anonymous": "false",
        },
        {
            "fs.s3a.access.key": "K",
            "fs.s3a.secret.key": "S",
            "fs.s3a.session.token": "T",
            "fs.s3a.endpoint": "http://h:1",
            "anon": "False",
        },
        {
            "AWS_ACCESS_KEY_ID": "K",
            "AWS_SECRET_ACCESS_KEY": "S",
            "AWS_SESSION_TOKEN": "T",
            "client_kwargs": {"endpoint_url": "http://h:1", "region_name": "us-east-1"},
            "anonymous": False,
        },
        {
            "access_key": "K",
            "secret_key": "S",
            "session_token": "T",
            "endpoint_override": "h:1",
            "scheme": "http",
            "anonymous": False,
        },
    ],
)
def test_spellings_of_s3_options_mean_the_same(options: dict[str, Any]) -> None:
    expected = {
        "access_key": "K",
        "secret_key": "S",
        "session_token": "T",
        "endpoint_override": "h:1",
        "scheme": "http",
        "region": "us-east-1",
        "anonymous": False,
        "connect_timeout": 5.0,
        "request_timeout": 20.0,
    }
    assert arrow_s3_options(options) == expected


def test_options_for_s3fs() -> None:
    options = {
        "access_key": "K",
        "secret_key": "S",
        "endpoint_override": "h:1",
        "scheme": "http",
        "region": "eu-west-1",
        "read_timeout": "7",
        "requester_pays": True,
        "client_kwargs": {"verify": False},
    }
    assert s3fs_options(options, 2) == {
        "key": "K",
        "secret": "S",
        "endpoint_url": "http://h:1",
        "requester_pays": True,
        "client_kwargs": {"verify": False, "region_name": "eu-west-1"},
        "config_kwargs": {
            "connect_timeout": 5.0,
            "read_timeout": 7.0,
            "retries": {"total_max_attempts": 2},
        },
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"acess_key": "hush"}, "unknown storage options for s3: acess_key"),
        ({"client_kwargs": {"verify": "hush"}}, "unknown storage options for s3: client_kwargs"),
        ({"key": "hush1", "access_key": "hush2"}, "access_key is given twice"),
        ({"anon": "hush"}, "anonymous has a bad value"),
        ({"connect_timeout": "hush"}, "connect_timeout has a bad value"),
        ({"library": "hush"}, "library: expected one of arrow, fsspec"),
    ],
)
def test_bad_options_are_named_and_their_values_not_shown(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(OptionError, match=problem) as caught:
        Storage.open("s3://lake/x", options)
    assert "hush" not in str(caught.value)


def test_secret_values_do_not_show() -> None:
    secrets = SecretOptions(
        {"a": "abcd", "b": "abcdef", "c": {"d": "nested!"}, "e": 1, "scheme": "http"}
    )
    assert secrets.redact("abcdef abcd nested! 1 http") == "*** *** *** 1 http"
    assert repr(secrets) == "SecretOptions()"
    assert pickle.loads(pickle.dumps(secrets)).options == secrets.options


def test_a_scheme_that_nobody_knows_is_named() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(UnsupportedError, match="nonsense:// is not known to fsspec"):
        Storage.open("nonsense://x")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UnsupportedError, match="memory:// needs fsspec"):
        Storage.open("memory://x")


@pytest.mark.parametrize(
    ("error", "transient", "gone"),
    [
        (TimeoutError(), True, False),
        (ConnectionResetError(), True, False),
        (OSError(errno.EBUSY, "busy"), True, False),
        (OSError(errno.EIO, "broken disk"), False, False),
        (PermissionError(), False, False),
        (FileNotFoundError(), False, True),
        (OSError("AWS Error NETWORK_CONNECTION during GetObject operation: x"), True, False),
        (OSError("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation"), True, False),
        (OSError("AWS Error UNKNOWN (HTTP status 400) during HeadObject operation"), False, False),
        (OSError("AWS Error NO_SUCH_KEY during GetObject operation: x"), False, True),
        (OSError("AWS Error ACCESS_DENIED during GetObject operation: x"), False, False),
        (ValueError(), False, False),
    ],
    ids=repr,
)
def test_which_errors_pass(error: Exception, transient: bool, gone: bool) -> None:
    assert (is_transient(error), is_gone(error)) == (transient, gone)


@pytest.mark.parametrize(
    ("status", "transient", "gone"),
    [(500, True, False), (429, True, False), (404, False, True), (403, False, False)],
)
def test_the_status_behind_an_error_decides(status: int, transient: bool, gone: bool) -> None:
    class ClientError(Exception):
        response = {"ResponseMetadata": {"HTTPStatusCode": status}}  # noqa: RUF012

    error = OSError(errno.EIO, "translated")
    error.__cause__ = ClientError()
    assert (is_transient(error), is_gone(error)) == (transient, gone)


def tries_of(failures: list[Exception], policy: Retry) -> tuple[int, int]:
    """How often it was called, and how often as a retry."""
    calls, retries = [0], [0]

    def call() -> None:
        calls[0] += 1
        if failures:
            raise failures.pop(0)

    def again() -> None:
        retries[0] += 1

    retry_request(call, problem="read", file="f", policy=policy, redact=str, on_retry=again)
    return calls[0], retries[0]


def test_tries_end_with_the_first_success() -> None:
    assert tries_of([], Retry(wait=0.001)) == (1, 0)
    assert tries_of([TimeoutError(), OSError(errno.EPIPE, "x")], Retry(wait=0.001)) == (3, 2)


def test_the_last_cause_is_reported() -> None:
    with pytest.raises(StorageError) as caught:
        tries_of([TimeoutError("one"), TimeoutError("two")], Retry(tries=2, wait=0.001))
    assert str(caught.value) == "f: read: TimeoutError: two (tried 2 times)"
    assert str(caught.value.__cause__) == "two"


class Attempts:
    """Fails with these errors, one after the other, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors, self.count, self.retries = [*errors], 0, 0

    def __call__(self) -> int:
        self.count += 1
        if self._errors:
            raise self._errors.pop(0)
        return self.count

    def before_retry(self) -> None:
        self.retries += 1


def test_a_call_is_retried_after_the_errors_that_are_named() -> None:
    call = Attempts(ConflictError("first"), FileGoneError("second"))
    errors = ConflictError, FileGoneError
    assert retry(call, on=errors, attempts=3, before_retry=call.before_retry) == 3
    assert call.retries == 2


@pytest.mark.parametrize(
    ("attempts", "limit", "expected"), [(2, 60.0, "second"), (9, 60.0, "third"), (9, 0.0, "first")]
)
def test_the_last_error_is_raised(attempts: int, limit: float, expected: str) -> None:
    call = Attempts(ConflictError("first"), ConflictError("second"), ValueError("third"))
    with pytest.raises((ConflictError, ValueError), match=expected):
        retry(call, on=ConflictError, attempts=attempts, wait=0.001, limit=limit)


def test_waits_double_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("alcid.storage.retries.time.sleep", waits.append)
    monkeypatch.setattr("alcid.storage.retries.random.uniform", lambda _least, most: most)
    call = Attempts(*(ConflictError("again") for _ in range(4)))
    assert retry(call, on=ConflictError, attempts=5, wait=1.0, longest_wait=3.0) == 5
    assert waits == [1.0, 2.0, 3.0, 3.0]


def test_parts_that_overlap_are_cached() -> None:
    content = bytes(range(100))
    behind = CountingSource(BytesSource(content))
    source = CachedSource(behind, [(30, content[30:40])])
    source.add(10, content[10:60])
    source.load(35, 20)
    assert behind.reads == []
    assert source.read(35, 20) == content[35:55]
    assert not source.has(59, 2)
    assert source.read(59, 2) == content[59:61]
    assert behind.reads == [(59, 2)]


def test_errors_survive_pickling() -> None:
    for kind in (StorageError, FileGoneError, NameTakenError):
        error = kind("broken", file="s3://a/b", tries=3)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert (str(again), again.tries) == ("s3://a/b: broken (tried 3 times)", 3)
        assert isinstance(again, OSError)


def test_results_of_threads_come_in_order_and_errors_stop_the_rest() -> None:
    assert run_all(lambda number: number * 2, range(100)) == list(range(0, 200, 2))
    began: list[int] = []

    def call(number: int) -> None:
        began.append(number)
        if number == 0:
            raise FormatError("bad")
        threading.Event().wait(0.01)

    with pytest.raises(FormatError):
        run_all(call, range(2000))
    assert len(began) < 2000


def test_threads_work_again_in_a_forked_process() -> None:
    run_all(str, range(4))
    script = "from alcid.storage.threads import run_all\nimport os, sys\nrun_all(str, range(4))\n"
    script += "child = os.fork()\nif child == 0:\n    os._exit(len(run_all(str, range(7))))\n"
    script += "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    arguments = [sys.executable, "-W", "ignore", "-c", script]
    assert os.waitstatus_to_exitcode(os.spawnv(os.P_WAIT, sys.executable, arguments) << 8) == 7


def test_traffic_is_counted_by_many_threads() -> None:
    counter = TrafficCounter()

    def count() -> None:
        for _ in range(1000):
            counter.add(reads=1, bytes_read=3)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.snapshot() == Traffic(reads=8000, bytes_read=24_000)
    assert counter.snapshot().requests == 8000
