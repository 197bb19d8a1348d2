"""An HTTP proxy that counts requests and, when told to, answers as a bad network or server does."""

from __future__ import annotations

import contextlib
import http.client
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, cast

__all__ = ["Fault", "FaultProxy", "Request"]

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect"}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the client sent it, with the path as it is on the wire."""

    method: str
    path: str
    range: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}" + (f" {self.range}" if self.range else "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a request in place of a proper answer.

    `status`: the server's error. `delay`: seconds before the proper answer. `truncate`: half of the
    body, then the connection ends. `reset`: the connection ends before any answer. `lost`: the
    server does its work, and the answer is lost.
    """

    kind: Literal["status", "delay", "truncate", "reset", "lost"]
    status: int = 503
    code: str = "SlowDown"
    seconds: float = 0.0


class FaultProxy:
    """A proxy on a free port of the loopback device, in front of a server on the same device."""

    def __init__(self, port: int) -> None:
        self.requests: list[Request] = []
        self._faults: list[tuple[str, Fault]] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy, self._server.target = self, port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, fault: Fault, times: int = 1, *, method: str = "GET") -> None:
        """Let the next `times` requests with this method fail."""
        with self._lock:
            self._faults += [(method, fault)] * times

    def take(self, request: Request) -> Fault | None:
        """Note the request, and return its fault."""
        with self._lock:
            self.requests.append(request)
            for position, (method, fault) in enumerate(self._faults):
                if method == request.method:
                    del self._faults[position]
                    return fault
        return None

    @contextlib.contextmanager
    def watch(self) -> Iterator[list[str]]:
        """The requests made within the block, as text; the list is filled when it ends."""
        begin = len(self.requests)
        seen: list[str] = []
        yield seen
        seen += map(str, self.requests[begin:])

    def reset(self) -> None:
        """Forget requests and faults."""
        with self._lock:
            self.requests.clear()
            self._faults.clear()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    proxy: FaultProxy
    target: int
    daemon_threads = True
    block_on_close = False  # a connection that a client keeps open must not delay the tests

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are expected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        body = self._body()
        server = cast(_Server, self.server)
        fault = server.proxy.take(Request(self.command, self.path, self.headers.get("Range")))
        kind = fault.kind if fault else None
        if fault and kind == "status":
            self._error(fault)
            return
        if kind == "reset":
            self._drop()
            return
        if fault and kind == "delay":
            time.sleep(fault.seconds)
        status, headers, data = self._forward(server.target, body)
        if kind == "lost":
            self._drop()
            return
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if kind == "truncate":
            self.wfile.write(data[: len(data) // 2])
            self._drop(reset=False)
        else:
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - http.server's names

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _forward(self, port: int, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {n: v for n, v in self.headers.items() if n.lower() not in _HOP_BY_HOP}
        if body:
            headers["Content-Length"] = str(len(body))
        connection.request(self.command, self.path, body or None, headers)
        response = connection.getresponse()
        data = response.read()
        kept = [(n, v) for n, v in response.getheaders() if n.lower() not in _HOP_BY_HOP]
        if not any(name.lower() == "content-length" for name, _ in kept):
            kept.append(("Content-Length", str(len(data))))
        connection.close()
        return response.status, kept, data

    def _error(self, fault: Fault) -> None:
        body = f"<Error><Code>{fault.code}</Code><Message>as told</Message></Error>".encode()
        self.send_response_only(fault.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _drop(self, *, reset: bool = True) -> None:
        self.wfile.flush()
        if reset:  # with a linger of zero seconds, RST is sent instead of FIN
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        with contextlib.suppress(OSError):
            if not reset:
                self.connection.shutdown(socket.SHUT_RDWR)
            self.connection.close()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""
