"""Joins the programs of revisions against what they come from. It writes nothing.

It knows the graph and the frozen programs; how two programs are combined is `program.combine`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlmig.commands.pipeline_files import parsed_pipeline
from sqlmig.commands.project import Project
from sqlmig.errors import ProgramErrors
from sqlmig.planning.explain import describe_diff
from sqlmig.program.combine import Conflict, combine, differences
from sqlmig.program.diff import diff_programs
from sqlmig.program.marks import Labels
from sqlmig.program.model import EMPTY_PROGRAM, Program
from sqlmig.program.pieces import Key
from sqlmig.revisions.graph import RevisionGraph


@dataclass(frozen=True)
class Side:
    """A program that takes part: what conflicts call it, its raw text, and what that means.

    Args:
        name: a revision's id, or several.
        files: path -> text as frozen, with variables in place.
        program: the same parsed, with variables filled in.
    """

    name: str
    files: Mapping[str, str]
    program: Program

    @property
    def as_frozen(self) -> Program:
        """The parsed program over the text as it is frozen: of that, statements are taken."""
        return replace(self.program, files=dict(sorted(self.files.items())))


@dataclass(frozen=True)
class Join:
    """What came of joining two sides.

    Args:
        base, ours, theirs: what took part.
        files: the joined files; where there are conflicts, with marks.
        program: the joined program; None when there are conflicts or errors.
        conflicts: what both sides changed differently.
        errors: without conflicts, why the joined statements don't go together.
    """

    base: Side
    ours: Side
    theirs: Side
    files: Mapping[str, str]
    program: Program | None
    conflicts: tuple[Conflict, ...] = ()
    errors: ProgramErrors | None = None


@dataclass(frozen=True)
class _Base:
    side: Side
    unknown: frozenset[Key] = field(default_factory=frozenset)


def side_of(project: Project, revision: str, files: Mapping[str, str] | None = None) -> Side:
    """A revision's program, or `files` in its place."""
    found = project.revision_files(revision) if files is None else files
    return Side(revision, found, project.parse(found))


def checked_out(project: Project, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """The files in `pipeline/` in place of those of the revision whose program they are.

    Comments and layout that are in no revision yet are so taken along.

    Returns:
        The first such one of `names` -> the files; nothing where it is the program of none.
    """
    program = parsed_pipeline(project)
    if program is None:
        return {}
    for name in names:
        if diff_programs(side_of(project, name).program, program).is_empty:
            return {name: project.working_files()}
    return {}


def join(
    project: Project,
    base: Side,
    ours: Side,
    theirs: Side,
    *,
    unknown: frozenset[Key] = frozenset(),
) -> Join:
    """Bring what changed from `base` to `theirs` into `ours`."""
    files, conflicts = combine(
        base.as_frozen,
        ours.as_frozen,
        theirs.as_frozen,
        unknown=unknown,
        labels=Labels(ours.name, base.name, theirs.name),
    )
    if conflicts:
        return Join(base, ours, theirs, files, None, conflicts)
    try:
        return Join(base, ours, theirs, files, project.parse(files))
    except ProgramErrors as error:
        return Join(base, ours, theirs, files, None, errors=error)


def join_revisions(
    project: Project,
    graph: RevisionGraph,
    names: Sequence[str],
    texts: Mapping[str, Mapping[str, str]] | None = None,
) -> Join:
    """The program that has the changes of all of `names`, joined one after another.

    Args:
        names: two revisions or more, none of them below another.
        texts: revision -> files that mean the same as its own and are to be taken in their place.

    Returns:
        The last join, or the first one that has conflicts or errors.
    """
    texts = texts or {}
    ours = side_of(project, names[0], texts.get(names[0]))
    seen = history_of(graph, names[0])
    joined: Join | None = None
    for number, name in enumerate(names[1:], 1):
        history = history_of(graph, name)
        base = _base(project, graph, seen & history)
        theirs = side_of(project, name, texts.get(name))
        joined = join(project, base.side, ours, theirs, unknown=base.unknown)
        if joined.program is None:
            return joined
        ours = Side(" and ".join(names[: number + 1]), joined.files, joined.program)
        seen |= history
    assert joined is not None, "a join is one of two or more"
    return joined


def _base(project: Project, graph: RevisionGraph, common: frozenset[str]) -> _Base:
    """The program that two sides come from.

    Where histories cross there are several newest common ancestors; the base is then what they
    make when they are joined, as in Git's recursive merge: with only one of them, a side that took
    a change of the other one back would seem not to have touched it. Where they can't be joined,
    each merge has settled that in its own way, and what they differ in is unknown.
    """
    tops = [name for name in sorted(common) if common.isdisjoint(graph.children(name))]
    if not tops:
        return _Base(Side("base", {}, EMPTY_PROGRAM))
    if len(tops) == 1:
        return _Base(side_of(project, tops[0]))
    joined = join_revisions(project, graph, tops)
    if joined.program is not None:
        return _Base(Side(" and ".join(tops), joined.files, joined.program))
    first, *others = (side_of(project, name) for name in tops)
    unknown = frozenset[Key]().union(
        *(differences(first.as_frozen, other.as_frozen) for other in others)
    )
    return _Base(first, unknown)


def history_of(graph: RevisionGraph, name: str) -> frozenset[str]:
    """The revisions whose changes a program holds: what it depends on needn't be among them."""
    return graph.ancestors(name, dependencies=False)


def describe_join(joined: Join) -> str:
    """The conflicts, or why the statements don't go together, in lines without a margin."""
    if joined.errors is not None:
        return "\n".join(str(error) for error in joined.errors.errors)
    return "\n".join(line for conflict in joined.conflicts for line in _lines(joined, conflict))


def _lines(joined: Join, conflict: Conflict) -> list[str]:
    where = f"{conflict.location}: " if conflict.location else ""
    what = f"{where}{conflict.what} `{conflict.name}`"
    if conflict.readers:
        gone, kept = joined.ours, joined.theirs
        if _has(gone.program, conflict):
            gone, kept = kept, gone
        read = ", ".join(f"`{name}`" for name in conflict.readers)
        return [f"{what}: {gone.name} removed it, and {read} of {kept.name} reads it"]
    changes = [f"{what} is changed by both sides, each in its own way"]
    if conflict.what in ("file", "statement"):
        return changes
    for side in (joined.ours, joined.theirs):
        diff = diff_programs(joined.base.program, side.program)
        found = [change for change in diff.changes if change.name == conflict.name]
        own = [change for change in found if change.how != "affected"]
        lines = describe_diff(replace(diff, changes=tuple(own or found)))
        changes += [f"  {side.name}: {line}" for line in lines]
    return changes


def _has(program: Program, conflict: Conflict) -> bool:
    parts = program.functions if conflict.what == "function" else program.relations
    return conflict.name in parts
