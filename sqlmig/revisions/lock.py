"""`heads.lock`: one line for each head, with the digest of its file. Pure text; it opens no file.

Two branches that each add a revision both change its line, so Git reports a conflict when they are
merged, and not the deployment that comes after. The files alone would never conflict: they have
different names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlmig.errors import Location, RevisionError
from sqlmig.program.marks import side_of_mark
from sqlmig.revisions.errors import listed
from sqlmig.revisions.file import RevisionFile, normalised

LOCK_NAME = "heads.lock"
ANEW = "`sqlmig merge` writes it anew"

_COMMENT = (
    "# The heads of the history, each with the digest of its file. sqlmig writes this file.\n"
    "# A conflict here means that two branches each added a revision: run `sqlmig merge`.\n"
)
_LINE = re.compile(r"([A-Za-z0-9_]+) sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class HeadsLock:
    """What the file says.

    Args:
        heads: id -> digest of the revision's file; those of both sides where Git has left marks.
        ours: where Git has left marks, the heads of the side that was checked out; else None.
    """

    heads: Mapping[str, str]
    ours: frozenset[str] | None = None


def render_lock(heads: Mapping[str, RevisionFile]) -> str:
    """The text for these heads, sorted; a digest doesn't depend on a checkout's line ends."""
    lines = (f"{name} sha256:{heads[name].digest}\n" for name in sorted(heads))
    return f"{_COMMENT}{''.join(lines)}"


def parse_lock(text: str, path: str) -> HeadsLock:
    """Read the file, with or without Git's conflict marks.

    Raises:
        RevisionError: with the line that is neither a head, a comment nor a mark.
    """
    heads: dict[str, str] = {}
    ours: set[str] = set()
    side, has_marks = "both", False
    for number, line in enumerate(normalised(text).split("\n"), 1):
        mark = side_of_mark(line)
        if mark is not None:
            side, has_marks = mark, True
        elif line.strip() and not line.startswith("#") and side != "base":
            entry = _LINE.fullmatch(line.strip())
            if entry is None:
                raise RevisionError(
                    "this line is not a revision's id and `sha256:` with its file's digest",
                    location=Location(path, number),
                    hint=ANEW,
                )
            heads[entry[1]] = entry[2]
            if side != "theirs":
                ours.add(entry[1])
    return HeadsLock(dict(sorted(heads.items())), frozenset(ours) if has_marks else None)


def mismatch(lock: HeadsLock, heads: Mapping[str, RevisionFile], path: str) -> RevisionError | None:
    """What is wrong with a lock beside these heads, as an error; None when it is right.

    Args:
        heads: the files that no other file follows, by id.
        path: the lock's, as shown to people.
    """
    if lock.ours is not None:
        return RevisionError(
            "two branches each added a revision, and Git left conflict marks",
            location=Location(path),
            hint="`sqlmig merge` joins the heads and writes the file anew; "
            "`sqlmig rebase` puts one on top of the other",
        )
    if set(lock.heads) != set(heads):
        return RevisionError(
            f"it names {listed(sorted(lock.heads)) or 'no head'}, and the files have "
            f"{listed(sorted(heads)) or 'none'}",
            location=Location(path),
            hint="is a revision file missing, or one too many? if the files are right, " + ANEW,
        )
    edited = [name for name in sorted(heads) if heads[name].digest != lock.heads[name]]
    if not edited:
        return None
    return RevisionError(
        f"the file of {listed(edited)} was edited since it was written",
        location=Location(path),
        hint=f"if `{heads[edited[0]].path}` is as it should be, {ANEW}",
    )
