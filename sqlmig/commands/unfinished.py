"""A merge or a rebase that waits for a person: what was asked, and how `pipeline/` was before.

It lies in `.sqlmig/unfinished.json`, which belongs to one checkout and not into Git.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from sqlmig.commands.pipeline_files import put_back
from sqlmig.commands.project import Project
from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.errors import listed

Verb = Literal["merge", "rebase"]
_PATH = ".sqlmig/unfinished.json"


@dataclass(frozen=True)
class Unfinished:
    """What goes on with `--continue` and ends with `--abort`.

    Args:
        revisions: a merge's parents; the revisions that are rebased, oldest first.
        digests: of their files, when it was begun.
        before: `pipeline/` before it, path -> text.
        written: the paths that were written with conflicts.
        message, rev_id, branch_label: of a merge.
        onto: what is rebased upon.
        solved: a rebase's programs so far, revision -> path -> text.
        former: the program that the first of them was made on, where its parent has another by now.
    """

    verb: Verb
    revisions: tuple[str, ...]
    digests: Mapping[str, str]
    before: Mapping[str, str]
    written: tuple[str, ...] = ()
    message: str = ""
    rev_id: str | None = None
    branch_label: str | None = None
    onto: str = ""
    solved: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    former: Mapping[str, str] | None = None

    @property
    def involved(self) -> tuple[str, ...]:
        """The revisions whose files may not change while it is unfinished."""
        return (*self.revisions, self.onto) if self.onto else self.revisions

    @property
    def hint(self) -> str:
        """What to type to go on, or to give it up."""
        return (
            f"solve the conflicts in pipeline/, then `sqlmig {self.verb} --continue`; "
            f"or `sqlmig {self.verb} --abort`"
        )


def unfinished(project: Project, verb: Verb | None = None) -> Unfinished | None:
    """What is unfinished in this checkout.

    Args:
        verb: only if it is this.

    Raises:
        RevisionError: the file can't be read.
    """
    path = project.root / _PATH
    if not path.is_file():
        return None
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        for name in ("revisions", "written"):
            read[name] = tuple(read[name])
        found = Unfinished(**read)
    except (ValueError, TypeError, KeyError):
        raise RevisionError(
            "this can't be read",
            location=Location(_PATH),
            hint="delete it: the merge or rebase that it tells of has to be begun anew",
        ) from None
    return found if verb in (None, found.verb) else None


def keep(project: Project, state: Unfinished) -> None:
    """Write it down."""
    path = project.root / _PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(state), indent=1, sort_keys=True), encoding="utf-8")
    partial.replace(path)


def forget(project: Project) -> None:
    """It is finished, or given up."""
    (project.root / _PATH).unlink(missing_ok=True)


def give_up(project: Project, state: Unfinished) -> bool:
    """Let `pipeline/` be what it was before, and forget what was begun.

    Returns:
        False when `pipeline/` was left as it is, because the revisions are other ones by now.
    """
    is_same = not has_moved(project, state)
    if is_same:
        put_back(project, state.before, state.written)
    forget(project)
    return is_same


def refuse_unfinished(project: Project) -> None:
    """Raise when a merge or a rebase is unfinished in this checkout.

    Raises:
        RevisionError: with what to type.
    """
    state = unfinished(project)
    if state is not None:
        raise RevisionError(
            f"a {state.verb} of {listed(state.revisions)} is unfinished", hint=state.hint
        )


def digests_of(project: Project, revisions: tuple[str, ...]) -> Mapping[str, str]:
    """The digests of those revisions that have a file."""
    files = project.directory.files
    return {name: files[name].digest for name in sorted(revisions) if name in files}


def has_moved(project: Project, state: Unfinished) -> bool:
    """Whether the revisions are other ones than when it was begun, as after `git merge --abort`."""
    return digests_of(project, state.involved) != state.digests


def refuse_moved(project: Project, state: Unfinished) -> None:
    """Raise when the revisions are no longer what they were when it was begun.

    Raises:
        RevisionError: with what to type.
    """
    if has_moved(project, state):
        raise RevisionError(
            f"the files of {listed(state.involved)} have changed since the {state.verb} was begun",
            hint=f"`sqlmig {state.verb} --abort`, and begin anew",
        )
