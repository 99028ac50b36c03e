"""A small S3 on loopback, in a process of its own: as much of it as delta-rs uses.

`python -m tests.object_store FOLDER` keeps buckets as folders and objects as files, and writes its
port on a line. A `PUT` with `If-None-Match: *` is refused where there is an object, as Amazon's S3
does: that is all that two writers of a ledger are kept apart by.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
_DATE = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True)
class ObjectStore:
    """A running store.

    Args:
        folder: holds the buckets.
        log: a line for each write that named a condition: its key.
    """

    url: str
    folder: Path
    log: Path

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs is told, without the secret key."""
        return {
            "aws_access_key_id": "someone",
            "aws_allow_http": "true",
            "aws_endpoint": self.url,
            "aws_region": "us-east-1",
        }

    @property
    def conditional(self) -> list[str]:
        """The keys of all writes that named a condition, in their order."""
        return self.log.read_text(encoding="utf-8").splitlines()


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """A store that keeps its objects in `folder`; ended with the block."""
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.object_store", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        yield ObjectStore(f"http://127.0.0.1:{port}", folder, _log(folder))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    """Serve until killed."""
    folder = Path(sys.argv[1])
    _log(folder).touch()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(folder))
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


def _log(folder: Path) -> Path:
    return folder.with_name(folder.name + ".log")


def _handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        @property
        def file(self) -> Path:
            return folder / unquote(urlsplit(self.path).path).strip("/")

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" in query:
                self.answer(200, _listing(self.file, query))
            elif not self.file.is_file():
                self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            elif "Range" in self.headers:
                self.answer_part(self.file.read_bytes(), self.headers["Range"])
            else:
                self.answer(200, self.file.read_bytes())

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                refused = False
                if self.headers.get("If-None-Match") == "*":
                    with _log(folder).open("a", encoding="utf-8") as log:
                        log.write(f"{self.file.relative_to(folder)}\n")
                    refused = self.file.exists()
                if not refused:
                    self.file.parent.mkdir(parents=True, exist_ok=True)
                    self.file.write_bytes(body)
            if refused:
                self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            else:
                self.answer(200, b"", ETag=_etag(body))

        def do_DELETE(self) -> None:
            self.file.unlink(missing_ok=True)
            self.answer(204, b"")

        def answer_part(self, body: bytes, asked: str) -> None:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            first = int(start) if start else max(0, len(body) - int(end))
            last = min(int(end) + 1, len(body)) if start and end else len(body)
            place = f"bytes {first}-{last - 1}/{len(body)}"
            self.answer(206, body[first:last], ETag=_etag(body), **{"Content-Range": place})

        def answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            headers = {"ETag": _etag(body), "Last-Modified": _HTTP_DATE, **headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing."""

    return Handler


_HTTP_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _listing(bucket: Path, query: dict[str, list[str]]) -> bytes:
    prefix = query.get("prefix", [""])[0]
    after = query.get("start-after", [""])[0]
    files = {p.relative_to(bucket).as_posix(): p for p in bucket.rglob("*") if p.is_file()}
    found = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>{_DATE}</LastModified>"
        f"<ETag>{_etag(file.read_bytes())}</ETag><Size>{file.stat().st_size}</Size></Contents>"
        for key, file in sorted(files.items())
        if key.startswith(prefix) and key > after
    )
    text = f"<ListBucketResult><Name>{bucket.name}</Name><IsTruncated>false</IsTruncated>{found}"
    return (text + "</ListBucketResult>").encode()


if __name__ == "__main__":
    main()
