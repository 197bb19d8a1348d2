"""An upload to S3 in parts, through s3fs: parts are sent, or copied by the server from objects.

Nothing shows before the last request, which S3 refuses if the name is taken (`If-None-Match`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import pairwise
from typing import Any

from alcid.errors import LimitError
from alcid.storage.backend import Request
from alcid.storage.traffic import TrafficCounter

IN_FLIGHT = 2
"""Parts that are sent at a time; the client holds each of them up to three times."""
COPIED_AT_A_TIME = 8
"""Parts that the server is asked to copy at a time."""
LEAST_PART = 5 << 20
"""Bytes that S3 requires of every part but the last."""
LARGEST_COPY = 512 << 20
"""Bytes that one request copies."""
MOST_PARTS = 10_000
"""Parts that S3 takes: 160 GB of bytes that are sent, 5 TB of bytes that it copies."""

_PRECONDITION_FAILED = 412


class S3Upload:
    """The draft of an object."""

    copies = True
    least_part = LEAST_PART

    def __init__(
        self, files: Any, key: str, root: str, request: Request, traffic: TrafficCounter
    ) -> None:
        """Begin an upload.

        Args:
            files: An `S3FileSystem`.
            key: The bucket and the key of the new object.
            root: The prefix that paths of other objects are below, with the bucket.
            request: Makes each request.
            traffic: Counts them.
        """
        self._files, self._root = files, root
        bucket, _, name = key.partition("/")
        self._upload = {"Bucket": bucket, "Key": name}
        self._name, self._request, self._traffic = key, request, traffic
        self._parts: list[Mapping[str, Any]] = []
        self._running: deque[Future[Mapping[str, Any]]] = deque()
        self._threads = ThreadPoolExecutor(COPIED_AT_A_TIME, thread_name_prefix="alcid-upload")
        self._is_published = False
        self._count = self._size = 0
        self._upload["UploadId"] = self._call("create_multipart_upload")["UploadId"]

    def write(self, data: bytes, /) -> None:
        """Send a part, while others are still on their way."""
        self._begin(
            lambda number: self._call("upload_part", PartNumber=number, Body=data), IN_FLIGHT
        )
        self._size += len(data)

    def copy(self, path: str, offset: int, length: int, /) -> bool:
        """Let the server copy a range of another object, in as many parts as it takes."""
        bucket, _, key = f"{self._root}/{path}".partition("/")
        count = -(-length // LARGEST_COPY)
        ends = [offset + length * part // count for part in range(count + 1)]
        for start, end in pairwise(ends):
            copied = {
                "CopySource": {"Bucket": bucket, "Key": key},
                "CopySourceRange": f"bytes={start}-{end - 1}",
            }
            self._begin(partial(self._copy, copied), COPIED_AT_A_TIME)
        self._size += length
        return True

    def _copy(self, copied: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        answer = self._call("upload_part_copy", PartNumber=number, **copied)
        return answer["CopyPartResult"]  # type: ignore[no-any-return]

    def publish(self) -> None:
        """Wait for all parts, and let the object appear."""
        while self._running:
            self._wait()
        self._request(
            _Completion(self._files, self._upload, self._parts, self._size, self._traffic)
        )
        self._is_published = True

    def discard(self) -> None:
        """Drop the parts, unless the object is published."""
        for future in self._running:
            future.cancel()
        self._threads.shutdown()
        if not self._is_published:
            with suppress(Exception):  # S3 removes them by a rule of the bucket
                self._call("abort_multipart_upload")

    def _begin(self, call: Callable[[int], Mapping[str, Any]], at_a_time: int) -> None:
        """Make a part in a thread, when fewer than so many are on their way."""
        if self._count == MOST_PARTS:
            raise LimitError(f"s3://{self._name}: S3 takes at most {MOST_PARTS:,} parts")
        while len(self._running) >= at_a_time:
            self._wait()
        self._count += 1
        context, number = copy_context(), self._count
        self._running.append(self._threads.submit(context.run, call, number))

    def _wait(self) -> None:
        """Wait for the oldest part on its way."""
        answer = self._running.popleft().result()
        self._parts.append({"PartNumber": len(self._parts) + 1, "ETag": answer["ETag"]})

    def _call(self, method: str, **arguments: Any) -> Any:
        def call() -> Any:
            self._traffic.add(puts=1)
            return self._files.call_s3(method, **self._upload, **arguments)

        return self._request(call)


class _Completion:
    """The last request of an upload, which may be made again."""

    def __init__(
        self,
        files: Any,
        upload: Mapping[str, str],
        parts: list[Mapping[str, Any]],
        size: int,
        traffic: TrafficCounter,
    ) -> None:
        self._files, self._upload, self._parts = files, upload, parts
        self._size, self._traffic = size, traffic
        self._has_failed = False

    def __call__(self) -> None:
        """Complete it; FileExistsError if another object has the name."""
        self._traffic.add(puts=1)
        try:
            parts = {"Parts": self._parts}
            self._files.call_s3(
                "complete_multipart_upload",
                **self._upload,
                MultipartUpload=parts,
                IfNoneMatch="*",
            )
        except Exception as error:
            if self._has_failed and self._is_there():  # of the first request, the answer was lost
                return
            self._has_failed = True
            if _is_taken(error):
                raise FileExistsError(self._upload["Key"]) from None
            raise

    def _is_there(self) -> bool:
        """Whether an object of this size and number of parts is there."""
        self._traffic.add(stats=1)
        with suppress(Exception):
            target = {name: self._upload[name] for name in ("Bucket", "Key")}
            head = self._files.call_s3("head_object", **target)
            tag: str = head["ETag"].strip('"')
            return head["ContentLength"] == self._size and tag.endswith(f"-{len(self._parts)}")
        return False


def _is_taken(error: BaseException) -> bool:
    """Whether S3 says that there is an object of the name: status 412."""
    response = getattr(error, "response", None) or {}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return isinstance(error, FileExistsError) or status == _PRECONDITION_FAILED
