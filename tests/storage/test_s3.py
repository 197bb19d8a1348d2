"""S3 and a real server: requests counted on the wire, and every kind of bad answer."""

from __future__ import annotations

import random
import time

import pytest

from alcid.errors import AlcidError, FileGoneError, StorageError
from alcid.storage import Retry, Storage, arrow_s3
from alcid.storage.arrow_s3 import ArrowS3Files
from tests.storage.conftest import KEYS, Opener
from tests.storage.fault_proxy import Fault, FaultProxy

DATA = random.Random(11).randbytes(400_000)
SMALL, LARGE = (5, 10), (1000, 200_000)  # the error's text fits into the second only


def reads(seen: list[str]) -> list[str]:
    """The ranges that were asked for."""
    return sorted(request.split("=")[-1] for request in seen if request.startswith("GET"))


def test_a_listing_is_one_request_and_one_for_each_folder(s3: Storage, proxy: FaultProxy) -> None:
    """Arrow gives a page after the other, so folders are listed in parallel; s3fs does not."""
    for name in ["a/1", "a/b/2", "_alcid/3", "c"]:
        s3.put(name, b"x")
    before = s3.traffic
    with proxy.watch() as seen:
        assert s3.list().paths.to_pylist() == ["a/1", "a/b/2", "c"]
    assert all("list-type=2" in request for request in seen)
    expected = 2 if isinstance(s3._backend, ArrowS3Files) else 1
    assert len(seen) == (s3.traffic - before).lists == expected


@pytest.mark.parametrize("most_parallel", [0, 3, 32])
def test_a_listing_is_the_same_however_its_folders_are_listed(
    s3: Storage, monkeypatch: pytest.MonkeyPatch, most_parallel: int
) -> None:
    names = [f"day={day}/{part}/{file}" for day in range(4) for part in "ab" for file in "yx"]
    names += ["top", "_alcid/bundle", "day=0/.hidden", "empty name/ 1"]
    for name in names:
        s3.put(name, name.encode())
    monkeypatch.setattr(arrow_s3, "_MOST_PARALLEL", most_parallel)
    everything = s3.list(hidden=True)
    assert everything.paths.to_pylist() == sorted(names)
    assert everything.sizes.tolist() == [len(name) for name in sorted(names)]
    shown = [name for name in sorted(names) if "_alcid" not in name and ".hidden" not in name]
    assert s3.list().paths.to_pylist() == shown
    inner = [name for name in sorted(names) if name.startswith("day=2/")]
    assert s3.list("day=2").paths.to_pylist() == inner
    assert s3.list("nothing").paths.to_pylist() == []


def test_a_read_of_a_known_file_is_one_request(s3: Storage, proxy: FaultProxy) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)  # Arrow asks for the size before the first one
    with proxy.watch() as seen:
        assert source.read(100, 50) == DATA[100:150]
    assert [request.split(" ")[0] for request in seen] == ["GET"]
    assert reads(seen) == ["100-149"]


def test_near_ranges_are_read_together_and_far_ones_apart(s3: Storage, proxy: FaultProxy) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    ranges = [(350_000, 10), (0, 100), (131_172, 100), (399_999, 1)]  # gaps: 128 KiB, more, less
    before = s3.traffic
    with proxy.watch() as seen:
        assert source.read_ranges(ranges) == [DATA[at : at + length] for at, length in ranges]
    assert reads(seen) == ["0-131271", "350000-399999"]
    done = s3.traffic - before
    assert (done.requests, done.reads, done.bytes_read) == (2, 2, 131_272 + 50_000)


def test_the_size_of_a_file_is_asked_for_once_and_only_by_arrow(
    open_s3: Opener, proxy: FaultProxy
) -> None:
    open_s3().put("a", DATA)
    s3, ranges = open_s3(), [("a", at, 10) for at in (0, 180_000, 399_000)]
    with proxy.watch() as seen:
        assert s3.read_many(ranges) == [DATA[at : at + 10] for _, at, _ in ranges]
    assert len(reads(seen)) == 3
    heads = [request for request in seen if request.startswith("HEAD")]
    assert (len(heads), s3.traffic.requests) in {(0, 3), (1, 4)}
    assert s3.traffic.stats == len(heads)


def test_versions_of_s3fs_are_etags_and_of_arrow_times(s3: Storage, open_s3: Opener) -> None:
    s3.put("a", b"hello")
    (version,) = s3.list().versions.to_pylist()
    if version.startswith('"'):
        assert version == '"5d41402abc4b2a76b9719d911017c592"'  # the MD5 of hello
    else:
        assert abs(int(version) / 1e9 - time.time()) < 60
    source = open_s3().source("a", 5, version)
    assert source.read(0, 5) == b"hello"


@pytest.mark.parametrize("where", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 500, "InternalError"),
        Fault("status", 502, "BadGateway"),
        Fault("status", 503, "SlowDown"),
        Fault("status", 503, "ServiceUnavailable"),
        Fault("status", 429, "TooManyRequests"),
        Fault("truncate"),
        Fault("reset"),
        Fault("delay", seconds=0.3),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{fault.code}",
)
def test_a_fault_that_passes_does_not_change_the_answer(
    s3: Storage, proxy: FaultProxy, fault: Fault, where: tuple[int, int]
) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    proxy.fail(fault, 2)
    with proxy.watch() as seen:
        assert source.read(*where) == DATA[where[0] : sum(where)]
    assert len(reads(seen)) == (1 if fault.kind == "delay" else 3)


@pytest.mark.parametrize("where", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "fault", [Fault("status", 503), Fault("truncate")], ids=lambda fault: fault.kind
)
def test_a_fault_that_stays_is_reported_after_the_last_try(
    s3: Storage, proxy: FaultProxy, fault: Fault, where: tuple[int, int]
) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    proxy.fail(fault, 99)
    before = s3.traffic
    with proxy.watch() as seen, pytest.raises(StorageError) as caught:
        source.read(*where)
    assert len(reads(seen)) == 3
    assert (s3.traffic - before).retries == 2
    assert str(caught.value).startswith(f"{source.name}: could not be read: ")
    assert str(caught.value).endswith("(tried 3 times)")


@pytest.mark.parametrize("where", [SMALL, LARGE], ids=["small", "large"])
def test_a_refusal_is_not_tried_again(
    s3: Storage, proxy: FaultProxy, where: tuple[int, int]
) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    for method in ("GET", "HEAD"):  # Arrow asks for the reason of a failed first read
        proxy.fail(Fault("status", 403, "AccessDenied"), 9, method=method)
    with proxy.watch() as seen, pytest.raises(StorageError) as caught:
        source.read(*where)
    assert len(reads(seen)) == 1
    assert caught.value.tries == 1
    assert not isinstance(caught.value, FileGoneError)


@pytest.mark.parametrize("where", [SMALL, LARGE], ids=["small", "large"])
def test_an_object_that_vanishes_while_it_is_read_is_gone(
    s3: Storage, open_s3: Opener, where: tuple[int, int]
) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    open_s3().delete(["a"])
    with pytest.raises(
        FileGoneError, match=f"{source.name}: could not be read: no such file or folder"
    ):
        source.read(*where)


def test_an_object_that_became_shorter_is_never_read_as_if_it_were_whole(
    s3: Storage, open_s3: Opener
) -> None:
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    other = open_s3()
    other.delete(["a"])
    other.put("a", DATA[:2000])
    for where in ((1000, 1001), (1000, 2000), (5000, 2000), (5000, 10)):
        with pytest.raises(StorageError):
            source.read(*where)


def test_a_last_byte_of_any_value_is_read(s3: Storage) -> None:
    data = bytes(range(256))
    s3.put("a", data)
    source = s3.source("a", 256)
    assert [source.read(0, end + 1) for end in range(256)] == [
        data[: end + 1] for end in range(256)
    ]


def test_a_server_that_does_not_answer_in_time_is_tried_again(
    open_s3: Opener, proxy: FaultProxy
) -> None:
    s3 = open_s3(request_timeout=1)
    s3.put("a", DATA)
    source = s3.source("a", len(DATA))
    source.read(0, 1)
    proxy.fail(Fault("delay", seconds=2.5), 1)
    begin = time.monotonic()
    assert source.read(*SMALL) == DATA[5:15]
    assert 0.9 < time.monotonic() - begin < 2.4
    assert s3.traffic.retries == 1


def test_no_try_begins_after_the_time_limit(open_s3: Opener, proxy: FaultProxy) -> None:
    s3 = open_s3(Retry(tries=50, wait=0.2, limit=0.5))
    proxy.fail(Fault("status", 503), 99)
    proxy.fail(Fault("status", 503), 99, method="HEAD")
    begin = time.monotonic()
    with pytest.raises(StorageError):
        s3.source("a", 100).read(0, 10)
    assert time.monotonic() - begin < 2


def test_a_page_of_a_listing_that_fails_is_asked_again(s3: Storage, proxy: FaultProxy) -> None:
    s3.put("a", b"x")
    proxy.fail(Fault("status", 503), 2)
    assert s3.list().paths.to_pylist() == ["a"]
    proxy.fail(Fault("truncate"), 2)
    assert s3.list().paths.to_pylist() == ["a"]


def test_a_listing_that_fails_is_an_error_and_not_empty(open_s3: Opener, proxy: FaultProxy) -> None:
    s3 = open_s3(Retry(tries=1))
    s3.put("a", b"x")
    proxy.fail(Fault("status", 403, "AccessDenied"), 9)
    with pytest.raises(StorageError, match="could not be listed"):
        s3.list()


@pytest.mark.parametrize("kind", ["status", "reset", "lost"])
def test_a_put_that_fails_at_first_is_whole_in_the_end(
    s3: Storage, proxy: FaultProxy, kind: str
) -> None:
    fault = {"status": Fault("status"), "reset": Fault("reset"), "lost": Fault("lost")}[kind]
    proxy.fail(fault, 1, method="PUT")
    s3.put("a", DATA)
    assert s3.source("a").read(0, len(DATA)) == DATA
    assert s3.list().sizes.tolist() == [len(DATA)]


def test_a_put_that_fails_leaves_nothing(s3: Storage, proxy: FaultProxy) -> None:
    proxy.fail(Fault("status", 500, "InternalError"), 99, method="PUT")
    with pytest.raises(StorageError, match="could not be written"):
        s3.put("a", DATA)
    assert len(s3.list()) == 0


def test_two_writers_of_one_name_do_not_replace_each_other(open_s3: Opener) -> None:
    open_s3().put("a", b"one")
    with pytest.raises(AlcidError, match="exists already"):
        open_s3().put("a", b"two")
    assert open_s3().source("a").read(0, 3) == b"one"


def test_a_server_that_is_not_there_is_a_storage_error() -> None:
    options = KEYS | {"endpoint_url": "http://127.0.0.1:9", "connect_timeout": 1}
    storage = Storage.open("s3://lake/table", options, retry=Retry(tries=2, wait=0.01))
    with pytest.raises(StorageError, match=r"could not be read: .*tried 2 times"):
        storage.source("a", 10).read(0, 1)


@pytest.mark.parametrize("library", ["arrow", "fsspec"])
def test_a_server_that_is_not_there_is_seen_within_seconds(library: str) -> None:
    if library == "fsspec":
        pytest.importorskip("s3fs")
    options = KEYS | {"endpoint_url": "http://127.0.0.1:9", "library": library}
    storage = Storage.open("s3://lake/table", options)
    begin = time.monotonic()
    with pytest.raises(StorageError, match=r"could not be listed: .*tried 4 times"):
        storage.list()
    assert time.monotonic() - begin < 5  # half a second; 30 with all tries of each page


def test_a_first_listing_that_fails_is_tried_by_page_once_the_server_has_answered(
    open_s3: Opener, proxy: FaultProxy
) -> None:
    open_s3().put("a", b"x")
    s3 = open_s3(Retry(tries=2, wait=0.01))
    proxy.fail(Fault("status", 503), 2)
    with proxy.watch() as seen:
        assert s3.list().paths.to_pylist() == ["a"]
    assert [request.split(" ")[0] for request in seen] == ["GET", "HEAD", "GET", "GET"]
    assert s3.traffic.retries == 1


def test_a_server_that_has_not_answered_so_far_is_tried_for_less_long(
    open_s3: Opener, proxy: FaultProxy
) -> None:
    open_s3().put("a", b"x")
    s3 = open_s3(Retry(tries=5, wait=0.05, contact=0.1))
    proxy.fail(Fault("reset"), 99, method="HEAD")
    with pytest.raises(StorageError) as first:
        s3.stat("a")
    assert first.value.tries <= 2
    proxy.reset()
    s3.stat("a")
    proxy.fail(Fault("reset"), 99, method="HEAD")
    with pytest.raises(StorageError) as later:
        s3.stat("a")
    assert later.value.tries == 5


def test_no_secret_is_shown(s3: Storage, proxy: FaultProxy) -> None:
    shown = [repr(s3), str(s3), repr(s3.source("a")), repr(s3.__dict__)]
    s3.put("a", DATA)
    for fault in (Fault("status", 403, KEYS["secret_key"]), Fault("status", 403, "AccessDenied")):
        for method in ("GET", "HEAD"):
            proxy.fail(fault, 3, method=method)
        with pytest.raises(StorageError) as caught:
            s3.source("a", len(DATA)).read(*LARGE)
        error: BaseException | None = caught.value
        while error is not None:
            shown.append(f"{error!r} {error}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        proxy.reset()
    for value in KEYS.values():
        assert not [text for text in shown if value in text]
