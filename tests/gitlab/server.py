"""What of GitLab's REST API our template calls, over HTTP: the notes of merge requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.github.server import serving


@dataclass
class GitLab:
    """The notes of a project's merge requests.

    Args:
        token: the one that may write; with another one, or none, nothing is answered.
        detour: the address that each request is sent to instead.
        requests: method and path of all requests that wrote.
        shown: the token that was shown last.
    """

    url: str = ""
    token: str = "glpat-s3cret"
    detour: str = ""
    notes: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    shown: str = ""

    def show(self, headers: Message[str, str]) -> None:
        """Note who asks."""
        self.shown = headers.get("PRIVATE-TOKEN", "")

    def add(self, project: int, number: int, body: str, *, system: bool = False) -> None:
        """Add a note to a merge request."""
        name = 1 + sum(len(found) for found in self.notes.values())
        self.notes.setdefault((project, number), []).append(
            {"id": name, "body": body, "system": system}
        )

    def bodies(self, project: int, number: int) -> list[str]:
        """The notes of a merge request, oldest first."""
        return [note["body"] for note in self.notes.get((project, number), [])]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON of a request's answer."""
        if self.detour:
            return 302, {"Location": self.detour + path}
        if self.shown != self.token:
            return 401, {"message": "401 Unauthorized"}
        url = urlsplit(path)
        if method != "GET":
            self.requests.append(f"{method} {url.path}")
        found = re.fullmatch(r"/projects/(\d+)/merge_requests/(\d+)/notes(?:/(\d+))?", url.path)
        if not found:
            return 404, {"message": "404 Not Found"}
        notes = self.notes.setdefault((int(found[1]), int(found[2])), [])
        if method == "GET":
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            size, page = int(asked["per_page"]), int(asked["page"])
            # GitLab's own order is the newest first
            listed = notes if asked.get("sort") == "asc" else notes[::-1]
            return 200, listed[(page - 1) * size : page * size]
        if method == "POST":
            self.add(int(found[1]), int(found[2]), body["body"])
            return 201, notes[-1]
        (note,) = [note for note in notes if note["id"] == int(found[3])]
        if method == "DELETE":
            notes.remove(note)
            return 204, None
        assert method == "PUT"
        note["body"] = body["body"]
        return 200, note


@contextmanager
def gitlab() -> Iterator[GitLab]:
    """A server while the block lasts."""
    state = GitLab()
    with serving(state):
        yield state
