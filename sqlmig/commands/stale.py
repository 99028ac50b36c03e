"""Revisions that were made on another program of their parent than it has now.

In a `git rebase` of several commits, or a merge with a branch whose revisions were rebased, Git
puts a revision behind a parent that was frozen anew. Its own program still is that of the old
parent with one change: deployed, it would take everything else back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmig.commands.project import Project
from sqlmig.errors import Location, RevisionError
from sqlmig.revisions.file import parse_revision
from sqlmig.revisions.graph import RevisionGraph


@dataclass(frozen=True)
class Stale:
    """A revision, its parent, and the program of the parent that it was made on."""

    revision: str
    parent: str
    former: Mapping[str, str]


def find_stale(project: Project, graph: RevisionGraph) -> Stale | None:
    """The first such revision of the merge or rebase that Git has stopped at; None without one."""
    from sqlmig.git.merging import sides_of_merge

    by_name = {file.path.rpartition("/")[2]: file for file in project.directory.files.values()}
    for side in sides_of_merge(project.directory.path):
        same = {by_name[name].revision for name in side.same if name in by_name}
        for parent in graph:
            file = project.directory.get(parent)
            former = side.former.get(file.path.rpartition("/")[2]) if file else None
            if file is None or former is None:
                continue
            try:
                program = parse_revision(former, file.path).files
            except RevisionError:
                continue
            found = [child for child in graph.children(parent) if child in same]
            if found and program != file.files:
                return Stale(found[0], parent, program)
    return None


def refuse_stale(project: Project, graph: RevisionGraph) -> None:
    """Raise when there is one.

    Raises:
        RevisionError: with what to type.
    """
    stale = find_stale(project, graph)
    if stale is not None:
        raise RevisionError(
            f"revision {stale.revision} was made on another program of `{stale.parent}`",
            location=Location(project.directory.files[stale.revision].path),
            hint="`sqlmig rebase` freezes it anew on the one that its parent has now",
        )
