"""An S3 server for tests: moto, with conditional writes that are atomic, as S3's own are.

    python -m tests.storage.s3_server PORT

moto checks whether an object exists and then stores it, so two writers can both be told that they
created it. Here requests that write are handled one at a time.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import run_simple


class AtomicWrites:
    """A WSGI application whose PUT and POST requests run one after the other."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("PUT", "POST"):
            return list(self._moto(environ, start_response))
        with self._lock:
            return list(self._moto(environ, start_response))


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        AtomicWrites(),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
