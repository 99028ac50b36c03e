"""The verbs that only look: history, heads, branches, current, show, check, diff.

They start no Spark.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlmig.commands.edited import refuse_edited
from sqlmig.commands.project import Project
from sqlmig.errors import RevisionError
from sqlmig.revisions.identifier import counts_from_deployed, resolve, resolve_range

if TYPE_CHECKING:
    from sqlmig.git.authorship import Authorship
    from sqlmig.ledger.deployment import Deployment
    from sqlmig.program.diff import ProgramDiff
    from sqlmig.revisions.graph import RevisionGraph


@dataclass(frozen=True)
class Entry:
    """A revision as `history`, `heads`, `branches` and `show` list it.

    Args:
        branch_labels: those that it belongs to, its own and those of its branch.
        docstring: what its file says at the top, cleaned.
        children: its direct children.
        is_depended_on: another revision names it in `depends_on`.
        is_lost: only the ledger still has it.
        authorship: the newest commit that changed its file; None where Git isn't asked, doesn't
            know, or the file is in no commit.
        is_committed: whether the file is in a commit; None where Git isn't asked.
    """

    revision: str
    down_revisions: tuple[str, ...]
    depends_on: tuple[str, ...]
    branch_labels: tuple[str, ...]
    message: str
    created: str
    path: str
    docstring: str
    children: tuple[str, ...]
    is_head: bool
    is_depended_on: bool = False
    is_current: bool = False
    is_lost: bool = False
    authorship: Authorship | None = None
    is_committed: bool | None = None

    @property
    def is_branch_point(self) -> bool:
        """Several revisions follow it."""
        return len(self.children) > 1

    @property
    def is_merge_point(self) -> bool:
        """It joins several revisions."""
        return len(self.down_revisions) > 1

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "revision": self.revision,
            "down_revisions": list(self.down_revisions),
            "depends_on": list(self.depends_on),
            "branch_labels": list(self.branch_labels),
            "message": self.message,
            "created": self.created,
            "path": self.path,
            "children": list(self.children),
            "is_head": self.is_head,
            "is_current": self.is_current,
            "is_branch_point": self.is_branch_point,
            "is_merge_point": self.is_merge_point,
            "is_lost": self.is_lost,
            "commit": self.authorship.commit if self.authorship else None,
            "author": self.authorship.author if self.authorship else None,
            "committed_at": self.authorship.at if self.authorship else None,
        }


@dataclass(frozen=True)
class Current:
    """The deployed revision: None for base. `is_head` says that nothing is to be applied."""

    entry: Entry | None
    is_head: bool
    since: datetime | None
    commit: str | None
    actor: str | None


@dataclass(frozen=True)
class Checked:
    """What `check` found: the head, and how `pipeline/` differs from it."""

    head: str | None
    diff: ProgramDiff


def history(
    project: Project, *, rev_range: str | None = None, with_current: bool = False
) -> tuple[Entry, ...]:
    """The revisions, newest first.

    Args:
        rev_range: `a:b`; by default all.
        with_current: read the ledger, mark the deployed revision, and list applied ones without a
            file, too.
    """
    graph: RevisionGraph
    deployment: Deployment | None
    if with_current or counts_from_deployed(rev_range or ""):
        deployment = project.deployment()
        graph = project.graph(deployment, rev_range or "")
    else:
        graph, deployment = project.history()
    deployed = deployment.revision if deployment else None
    names = resolve_range(graph, rev_range or ":", deployed)
    entries = tuple(_entry(project, graph, name, deployment) for name in names)
    entries = _authored(project, entries, "revisions")
    return entries if with_current else _unmarked(entries)


def heads(project: Project) -> tuple[Entry, ...]:
    """The revisions that nothing follows, sorted."""
    graph, deployment = project.history()
    return _unmarked(_entry(project, graph, name, deployment) for name in graph.heads)


def branches(project: Project) -> tuple[tuple[Entry, tuple[Entry, ...]], ...]:
    """Each branch point with the revisions that follow it."""
    graph, deployment = project.history()
    entries = {
        entry.revision: entry
        for entry in _unmarked(_entry(project, graph, name, deployment) for name in graph)
    }
    return tuple(
        (entries[name], tuple(entries[child] for child in graph.children(name)))
        for name in graph.branch_points
    )


def show(project: Project, target: str) -> tuple[Entry, str]:
    """A revision and the text of its file, or what the ledger kept of it.

    Raises:
        RevisionError: no such revision.
    """
    deployment = project.deployment()
    name = project.resolve(target, deployment)
    graph = project.graph(deployment, target)
    if name is None:
        raise RevisionError("base is no revision", hint="`sqlmig history` lists the revisions")
    file = project.directory.get(name)
    entry = _entry(project, graph, name, deployment)
    return (
        _authored(project, (entry,), entry.path)[0],
        file.text if file else deployment.known[name].text,
    )


def current(project: Project) -> Current:
    """What the ledger says is deployed."""
    deployment = project.deployment()
    last = deployment.last_applied
    is_head = project.file_heads == ((deployment.revision,) if deployment.revision else ())
    if deployment.revision is None:
        return Current(None, is_head, deployment.since, None, None)
    graph = project.graph(deployment)
    own = last is not None and last.revision == deployment.revision
    return Current(
        _entry(project, graph, deployment.revision, deployment),
        is_head,
        deployment.since,
        last.commit if last and own else None,
        last.actor if last and own else None,
    )


def check(project: Project) -> Checked:
    """Compare `pipeline/` with the head; every revision file is read whole.

    Returns:
        The difference; empty when nothing has to be frozen.

    Raises:
        RevisionError: broken files, several heads, an applied file that was edited, or a
            `heads.lock` that says something else than the files.
        ProgramErrors: the SQL has mistakes.
    """
    from sqlmig.commands.stale import refuse_stale
    from sqlmig.commands.unfinished import refuse_unfinished
    from sqlmig.program.diff import diff_programs
    from sqlmig.program.model import EMPTY_PROGRAM

    refuse_unfinished(project)
    _ = project.directory.files
    deployment = project.deployment()
    refuse_edited(project, deployment)
    graph, ledger = project.history()
    if ledger is None:
        project.directory.check()
    refuse_stale(project, graph)
    lock_error = project.directory.lock_error(ledger.known.values() if ledger else ())
    if lock_error is not None:
        raise lock_error
    head = resolve(graph, "head") if len(graph) else None
    frozen = project.parse(project.revision_files(head, deployment)) if head else EMPTY_PROGRAM
    return Checked(head, diff_programs(frozen, project.parse(project.working_files())))


def diff(project: Project, before: str = "deployed", after: str | None = None) -> ProgramDiff:
    """The program diff of two programs.

    Args:
        before: any name of a revision, `deployed` (what runs now), `working` (`pipeline/*.sql` as
            it is), or a Git ref, whose `pipeline/` it is then. `A..B` names both ends, and `A...B`
            begins at the commit that two Git refs have in common.
        after: the same; by default `working`.

    Raises:
        RevisionError, GitError: nothing is called so.
        ProgramErrors: the SQL has mistakes.
    """
    from sqlmig.commands.references import Programs, split_range
    from sqlmig.program.diff import diff_programs

    programs = Programs(project)
    ends = split_range(before)
    if ends is None:
        return diff_programs(programs.named(before), programs.named(after or "working"))
    if after is not None:
        raise RevisionError(
            f"`{before}` names both ends, and `{after}` is a third one",
            hint=f"`sqlmig diff {before}`, or `sqlmig diff {ends[0]} {after}`",
        )
    first, second, has_common_begin = ends
    begin = programs.ancestor(first, second) if has_common_begin else programs.named(first)
    return diff_programs(begin, programs.named(second))


def _unmarked(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries without a mark at the deployed one, which nobody asked for."""
    return tuple(replace(e, is_current=False) if e.is_current else e for e in entries)


def _authored(project: Project, entries: tuple[Entry, ...], below: str) -> tuple[Entry, ...]:
    """The entries with who wrote their files, as Git has it."""
    from sqlmig.git.authorship import read_authorship

    wrote = read_authorship(project.root, below) if entries else None
    if wrote is None:
        return entries
    return tuple(
        entry
        if entry.is_lost
        else replace(entry, authorship=wrote.get(entry.path), is_committed=entry.path in wrote)
        for entry in entries
    )


def _entry(
    project: Project, graph: RevisionGraph, name: str, deployment: Deployment | None
) -> Entry:
    file = project.directory.get(name)
    is_lost = file is None
    if file is None:
        from sqlmig.revisions.file import parse_revision

        assert deployment is not None
        file = parse_revision(deployment.known[name].text, deployment.known[name].path)
    return Entry(
        revision=name,
        down_revisions=graph.down_revisions(name),
        depends_on=file.depends_on,
        branch_labels=graph.labels_of(name),
        message=file.message,
        created=file.created,
        path=file.path,
        docstring=inspect.cleandoc(file.docstring),
        children=graph.children(name),
        is_head=name in graph.heads,
        is_depended_on=name not in graph.independent_heads,
        is_current=deployment is not None and deployment.revision == name,
        is_lost=is_lost,
    )
