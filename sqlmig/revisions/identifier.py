"""What people call revisions: ids, prefixes, `head`, `label@head`, `+1`, `ae10-2`, ranges.

The forms are alembic's. It knows the graph and the deployed revision's id; it reads no file.
"""

from __future__ import annotations

import re

from sqlmig.errors import RevisionError
from sqlmig.revisions.errors import listed
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.wording import counted

RESERVED = frozenset({"base", "current", "deployed", "head", "heads", "working"})

_RELATIVE = re.compile(r"(?:(?P<label>[^@]*)@)?(?P<symbol>\w+)?(?P<steps>[+-]\d+)")
_LEGAL = re.compile(r"[A-Za-z0-9_]+")


def verify_name(name: str, *, what: str = "revision id") -> str:
    """Return `name` if a revision or a branch may be called so.

    Raises:
        RevisionError: characters other than letters, digits and `_`, or a reserved word.
    """
    if not _LEGAL.fullmatch(name):
        raise RevisionError(
            f"{what} `{name}` holds other characters than letters, digits and `_`",
            hint="characters such as `@`, `+`, `-` and `:` have a meaning in revision names",
        )
    if name in RESERVED:
        raise RevisionError(
            f"{what} `{name}` is a reserved word", hint=f"reserved: {listed(sorted(RESERVED))}"
        )
    return name


def counts_from_deployed(text: str) -> bool:
    """Whether a revision's name or a range means something only together with the ledger."""
    return any("current" in end or re.fullmatch(r"(.*@)?[+-]\d+", end) for end in text.split(":"))


def counts_from_head(text: str) -> bool:
    """Whether a revision's name is `head`, `label@head`, `heads`, or some steps from one."""
    return re.fullmatch(r"(.*@)?heads?([+-]\d+)?", text) is not None


def resolve(graph: RevisionGraph, text: str, deployed: str | None = None) -> str | None:
    """The id of the one revision that `text` names, or None for base.

    Args:
        graph: the revisions.
        text: an id or its unique prefix, a branch label, `head`, `heads`, `base`, `current`, one
            of these after `label@`, with `+N` or `-N` behind, or `+N`, `-N`, `label@+N` alone.
        deployed: the deployed revision, from which `+N` and `-N` alone count; None for none.

    Raises:
        RevisionError: no revision or several are named so, or the walk leads too far.
    """
    relative = _RELATIVE.fullmatch(text)
    if not relative:
        if ":" in text:
            raise RevisionError(
                f"`{text}` is a range, and one revision is wanted here",
                hint="ranges are for `sqlmig history -r`",
            )
        branch, _, name = text.rpartition("@")
        return _absolute(graph, text, name, branch or None, deployed)
    label, symbol, steps = relative["label"] or None, relative["symbol"], int(relative["steps"])
    if symbol:
        start = _absolute(graph, text, symbol, label, deployed, may_lie_beside=steps > 0)
    else:
        start = _start_of_branch(graph, text, label, deployed)
        if start is None and steps < 0:
            raise RevisionError(
                f"`{text}` counts from the deployed revision, and nothing is deployed",
                hint="count from a revision instead: `head-1`",
            )
    return _walk(graph, text, start, steps, label)


def resolve_all(graph: RevisionGraph, text: str, deployed: str | None = None) -> tuple[str, ...]:
    """The ids that `text` names, sorted; `heads` and `label@heads` may name several.

    Raises:
        RevisionError: as for `resolve`.
    """
    label, _, symbol = text.rpartition("@")
    if symbol == "heads":
        return _heads(graph, label or None)
    found = resolve(graph, text, deployed)
    return () if found is None else (found,)


def resolve_range(graph: RevisionGraph, text: str, deployed: str | None = None) -> tuple[str, ...]:
    """The revisions of a range `a:b`, newest first; both ends count.

    An empty start is base and an empty end all heads. As in alembic, `-N` at the start counts from
    the end, `+N` at the end counts from the start, and both stop at base or at a head.

    Raises:
        RevisionError: not a range, an unknown end, or a start that is no ancestor of the end.
    """
    start_text, colon, end_text = text.strip().partition(":")
    if not colon or ":" in end_text:
        raise RevisionError(
            f"`{text}` is not a range", hint="write `a:b`, `a:`, `:b`, or `-3:current`"
        )
    from_end = re.fullmatch(r"-\d+", start_text)
    from_start = re.fullmatch(r"\+\d+", end_text)
    start: str | None
    ends: tuple[str, ...]
    if from_start and not from_end:
        start = resolve(graph, start_text or "base", deployed)
        end = _walk(graph, text, start, int(end_text), None, clamp=True)
        ends = () if end is None else (end,)
    else:
        ends = resolve_all(graph, end_text or "heads", deployed)
        if from_end and from_start:
            start = _walk(graph, text, deployed, int(start_text), None, clamp=True)
        elif from_end:
            start = _walk(graph, text, _one(text, ends), int(start_text), None, clamp=True)
        else:
            start = resolve(graph, start_text or "base", deployed)
    found = frozenset[str]().union(*(graph.ancestors(end) for end in ends))
    if start is not None and start not in found:
        raise RevisionError(
            f"`{start}` is not an ancestor of {listed(ends) or 'base'}",
            hint="a range runs from the older revision to the newer one",
        )
    return graph.sort(found & graph.descendants(start))[::-1]


def _absolute(
    graph: RevisionGraph,
    text: str,
    symbol: str,
    label: str | None,
    deployed: str | None,
    *,
    may_lie_beside: bool = False,
) -> str | None:
    """The revision that a name without steps means.

    Args:
        may_lie_beside: the name needn't lie on the branch, as before `+N`: the steps lead there.
    """
    if symbol in ("head", "heads"):
        return _one(text, _heads(graph, label))
    lineage = None if label is None else graph.lineage(_branch(graph, label))
    if symbol == "base":
        return None
    found = deployed if symbol == "current" else _by_prefix(graph, symbol, lineage)
    beside = found is not None and lineage is not None and found not in lineage
    if beside and not may_lie_beside:
        raise RevisionError(f"revision `{found}` is not on branch `{label}`")
    return found


def _by_prefix(graph: RevisionGraph, symbol: str, lineage: frozenset[str] | None) -> str:
    if symbol in graph:
        return symbol
    if symbol in graph.labels:
        return graph.labels[symbol]
    found = sorted(name for name in graph if symbol and name.startswith(symbol))
    if lineage is not None and len(found) > 1:
        found = [name for name in found if name in lineage]
    if not found:
        raise graph.unknown(symbol)
    if len(found) > 1:
        raise RevisionError(
            f"`{symbol}` is ambiguous: {listed(found[:5])}"
            + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            + " begin with it",
            hint="type more characters of the id",
        )
    return found[0]


def _branch(graph: RevisionGraph, label: str) -> str:
    """The revision that declares the label; any revision may stand in for a label, as in alembic."""
    return _by_prefix(graph, label, None)


def _heads(graph: RevisionGraph, label: str | None) -> tuple[str, ...]:
    if label is None:
        return graph.heads
    lineage = graph.lineage(_branch(graph, label))
    return tuple(head for head in graph.heads if head in lineage)


def _one(text: str, heads: tuple[str, ...]) -> str | None:
    if len(heads) > 1:
        raise RevisionError(
            f"`{text}` is ambiguous, there are {len(heads)} heads: {listed(heads)}",
            hint=f"join them with `sqlmig merge {' '.join(heads)}`, "
            f"or name one of them: `label@head`, `{heads[0]}`",
        )
    return heads[0] if heads else None


def _start_of_branch(
    graph: RevisionGraph, text: str, label: str | None, deployed: str | None
) -> str | None:
    """Where `label@+N` starts: the deployed revision, or else where its history left the branch."""
    if deployed is not None:
        graph.node(deployed)
    if label is None:
        return deployed
    lineage = graph.lineage(_branch(graph, label))
    if deployed is None or deployed in lineage:
        return deployed
    shared = graph.ancestors(deployed) & lineage
    tips = sorted(name for name in shared if shared.isdisjoint(graph.children(name)))
    return _only(text, f"branch `{label}` was left", "at", tips) if tips else None


def _walk(
    graph: RevisionGraph,
    text: str,
    start: str | None,
    steps: int,
    label: str | None,
    *,
    clamp: bool = False,
) -> str | None:
    """Go `steps` along the history, up when positive; `clamp` stops at its ends without an error."""
    lineage = None if label is None else graph.lineage(_branch(graph, label))
    name = start
    for done in range(abs(steps)):
        if steps > 0:
            options = graph.bases if name is None else graph.children(name)
            relation = "children"
        else:
            options = () if name is None else graph.down_revisions(name)
            relation = "parents"
        if lineage is not None:
            options = tuple(option for option in options if option in lineage)
        if options:
            name = _only(text, f"`{name or 'base'}` has", relation, sorted(options))
        elif steps < 0 and name is not None:
            name = None
        elif clamp:
            return name
        else:
            raise RevisionError(
                f"`{text}` leads too far: only {counted(done, 'step')} "
                f"{'up' if steps > 0 else 'down'} from `{start or 'base'}`"
            )
    return name


def _only(text: str, subject: str, relation: str, options: list[str]) -> str:
    if len(options) > 1:
        raise RevisionError(
            f"`{text}` is an ambiguous walk: {subject} {relation} {listed(options)}",
            hint=f"name the one you mean: `{options[0]}`, or choose its branch with `label@`",
        )
    return options[0]
