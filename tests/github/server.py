"""What of GitHub's REST API our action calls, over HTTP: comments of issues, runs of workflows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit


@dataclass
class GitHub:
    """A repository's comments and started runs.

    Args:
        may_write: what the token may do; in a pull request from a fork it may only read.
        requests: method and path of all requests that wrote.
    """

    url: str = ""
    may_write: bool = True
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    dispatched: list[tuple[str, str]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    def show(self, headers: Message[str, str]) -> None:
        """Note who asks."""
        self.tokens.add(headers["Authorization"])

    def add(self, issue: int, body: str, user: str = "User") -> int:
        """A comment; its id."""
        number = 1 + sum(len(found) for found in self.comments.values())
        self.comments.setdefault(issue, []).append(
            {"id": number, "body": body, "user": {"type": user}}
        )
        return number

    def bodies(self, issue: int) -> list[str]:
        """The comments of an issue."""
        return [comment["body"] for comment in self.comments.get(issue, [])]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON of a request's answer."""
        url = urlsplit(path)
        if method != "GET":
            self.requests.append(f"{method} {url.path}")
            if not self.may_write:
                return 403, {"message": "Resource not accessible by integration"}
        if found := re.fullmatch(r"/repos/[^/]+/[^/]+/issues/(\d+)/comments", url.path):
            issue = int(found[1])
            if method == "POST":
                return 201, {"id": self.add(issue, body["body"], "Bot")}
            asked = parse_qs(url.query)
            size, page = int(asked["per_page"][0]), int(asked["page"][0])
            return 200, self.comments.get(issue, [])[(page - 1) * size : page * size]
        if found := re.fullmatch(r"/repos/[^/]+/[^/]+/issues/comments/(\d+)", url.path):
            for comments in self.comments.values():
                for comment in [c for c in comments if c["id"] == int(found[1])]:
                    if method == "DELETE":
                        comments.remove(comment)
                        return 204, None
                    comment["body"] = body["body"]
                    return 200, comment
        if found := re.fullmatch(r".*/actions/workflows/([^/]+)/dispatches", url.path):
            self.dispatched.append((found[1], body["ref"]))
            return 204, None
        return 404, {"message": "Not Found"}


class Service(Protocol):
    """What is asked over HTTP."""

    url: str

    def show(self, headers: Message[str, str]) -> None:
        """Look at the headers of a request."""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON of a request's answer."""


@contextmanager
def github() -> Iterator[GitHub]:
    """A server while the block lasts."""
    state = GitHub()
    with serving(state):
        yield state


@contextmanager
def serving(state: Service) -> Iterator[None]:
    """A server on loopback while the block lasts; `state` is told its URL, and answers."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            state.show(self.headers)
            status, answer = state.answer(self.command, self.path, body)
            text = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            if status == 302:
                self.send_header("Location", answer["Location"])
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
