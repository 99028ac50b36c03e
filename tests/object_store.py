"""A small S3 on loopback: as much of it as delta-rs uses. It keeps objects in memory.

`PUT` with `If-None-Match: *` is refused where there is an object, as Amazon's S3 does: that is all
that two writers of a ledger are kept apart by.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class ObjectStore:
    """What the store holds and what it was asked.

    Args:
        objects: `/bucket/key` -> contents.
        conditional: the keys of all writes that named a condition.
        keys: access key ids that requests were signed with.
    """

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    conditional: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs is told."""
        return {
            "aws_access_key_id": "someone",
            "aws_allow_http": "true",
            "aws_endpoint": self.url,
            "aws_region": "us-east-1",
        }


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A running store."""
    store = ObjectStore()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(store))
    store.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(store: ObjectStore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with store.lock:
                store.keys.add(self.headers.get("Authorization", "").partition("Credential=")[2])
                url = urlsplit(self.path)
                query = parse_qs(url.query)
                if "list-type" in query:
                    self.answer(200, _listing(store, url.path.strip("/"), query))
                    return
                body = store.objects.get(unquote(url.path))
                if body is None:
                    self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                    return
                start, _, end = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
                if not start and not end:
                    self.answer(200, body)
                    return
                first = int(start) if start else len(body) - int(end)
                last = min(int(end) + 1 if start and end else len(body), len(body))
                shown = f"bytes {first}-{last - 1}/{len(body)}"
                self.answer(206, body[first:last], whole=body, content_range=shown)

        do_HEAD = do_GET

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            key = unquote(urlsplit(self.path).path)
            with store.lock:
                if self.headers.get("If-None-Match") == "*":
                    store.conditional.append(key)
                    if key in store.objects:
                        self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                        return
                store.objects[key] = body
                self.answer(200, b"", whole=body)

        def do_DELETE(self) -> None:
            with store.lock:
                store.objects.pop(unquote(urlsplit(self.path).path), None)
                self.answer(204, b"")

        def answer(
            self, status: int, body: bytes, *, whole: bytes | None = None, content_range: str = ""
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.send_header("ETag", _etag(body if whole is None else whole))
            if content_range:
                self.send_header("Content-Range", content_range)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _listing(store: ObjectStore, bucket: str, query: dict[str, list[str]]) -> bytes:
    prefix = query.get("prefix", [""])[0]
    after = query.get("start-after", [""])[0]
    found = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(body)}</Size>"
        f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{_etag(body)}</ETag></Contents>"
        for name, body in sorted(store.objects.items())
        if (key := name.removeprefix(f"/{bucket}/")).startswith(prefix) and key > after
    )
    text = f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{found}"
    return (text + "</ListBucketResult>").encode()
