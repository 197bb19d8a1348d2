"""Storages to test with: a folder, fsspec's memory, and S3 through both libraries."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alcid.storage import Retry, Storage
from tests.storage.fault_proxy import FaultProxy

KEYS = {"access_key": "AKIAVISIBLE", "secret_key": "hush-hush-secret", "region": "us-east-1"}
QUICK = Retry(tries=3, wait=0.01)

Opener = Callable[..., Storage]


def is_missing(package: str) -> bool:
    return importlib.util.find_spec(package) is None


@pytest.fixture(scope="session")
def moto_port() -> Iterator[int]:
    """A server of S3's protocol, in a separate process."""
    if is_missing("moto"):
        pytest.skip("needs moto[server]")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py")), str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as server:
        try:
            deadline = time.monotonic() + 60
            while server.poll() is None and time.monotonic() < deadline:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            else:
                pytest.fail("the S3 server did not start")
            yield port
        finally:
            server.terminate()


@pytest.fixture
def proxy(moto_port: int) -> Iterator[FaultProxy]:
    made = FaultProxy(moto_port)
    yield made
    made.close()


@pytest.fixture
def bucket(moto_port: int) -> str:
    """A new bucket, so that tests do not see each other's objects."""
    return new_bucket(moto_port)


def new_bucket(moto_port: int) -> str:
    """Make an empty bucket."""
    name = f"lake-{uuid.uuid4().hex}"
    request = urllib.request.Request(f"http://127.0.0.1:{moto_port}/{name}", method="PUT")
    urllib.request.urlopen(request).close()
    return name


@pytest.fixture(params=["arrow", "fsspec"])
def open_s3(request: pytest.FixtureRequest, proxy: FaultProxy, bucket: str) -> Opener:
    """Opens the bucket through the proxy, with either library."""
    if request.param == "fsspec" and is_missing("s3fs"):
        pytest.skip("needs s3fs")

    def opener(retry: Retry = QUICK, folder: str = "table", **options: Any) -> Storage:
        settings = KEYS | {"endpoint_url": proxy.endpoint, "library": request.param} | options
        return Storage.open(f"s3://{bucket}/{folder}", settings, retry=retry)

    return opener


@pytest.fixture
def s3(open_s3: Opener) -> Storage:
    return open_s3()


@pytest.fixture(params=["local", "memory", "s3-arrow", "s3-fsspec"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """One of each kind; the tests that use it say what all of them have in common."""
    kind: str = request.param
    if kind == "local":
        return Storage.open(tmp_path / "table")
    if kind == "memory":
        if is_missing("fsspec"):
            pytest.skip("needs fsspec")
        return Storage.open(f"memory://{uuid.uuid4().hex}/table", retry=QUICK)
    library = kind.removeprefix("s3-")
    if library == "fsspec" and is_missing("s3fs"):
        pytest.skip("needs s3fs")
    port: int = request.getfixturevalue("moto_port")
    lake: str = request.getfixturevalue("bucket")
    options = KEYS | {"endpoint_url": f"http://127.0.0.1:{port}", "library": library}
    return Storage.open(f"s3://{lake}/table", options, retry=QUICK)
