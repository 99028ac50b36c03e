"""The difference of two programs: what was added, removed, modified and affected, and why. It plans
nothing.

An unchanged view downstream of a change is affected. One rule leaves it out:

- `layout`: what only partitions a relation in another way does not affect its readers. PARTITIONED
  BY says in which files rows lie. A query's result is given by the rows of its inputs, each as
  often as it is there, and those are the same: they are written anew, in one commit. A query that
  can tell files apart (`input_file_name()`, `spark_partition_id()`, TABLESAMPLE) or the order in
  which they are read (`monotonically_increasing_id()`) is volatile, and computed by every tick in
  any case; one that names hidden columns (`_metadata`) is affected all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from sqlmig.program.canonical import fingerprint, plain_text
from sqlmig.program.function_changes import How, call_reasons, compare_functions
from sqlmig.program.model import Program, Relation, Sink, Source, Table, View
from sqlmig.program.query import read_query
from sqlmig.program.reasons import (
    connector_reasons,
    layout_reasons,
    table_reasons,
    view_reasons,
)

What = Literal["table", "view", "source", "sink", "function"]

_CONNECTORS: Mapping[str, What] = {"input": "source", "output": "sink"}


@dataclass(frozen=True, order=True)
class Change:
    """One relation or connector that differs.

    Args:
        name: the relation, or `<relation>.<connector>`.
        what: "table", "view" (materialized views and streaming tables too), "source", "sink" or
            "function".
        how: "added", "removed", "modified", or "affected": unchanged, downstream of a change.
        reasons: in words; what is added or removed has none.
        is_layout: only where the rows lie changed: readers are not affected.
        kind: of a relation, in the words of SQL, as it is or was; '' where it isn't known.
    """

    name: str
    what: What
    how: How
    reasons: tuple[str, ...] = ()
    is_layout: bool = False
    kind: str = field(default="", compare=False)

    @property
    def title(self) -> str:
        """What it is, for people: "streaming table", where `what` says "view"."""
        return self.kind or self.what


@dataclass(frozen=True)
class ProgramDiff:
    """All changes between two programs, sorted by name."""

    changes: tuple[Change, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when both programs mean the same."""
        return not self.changes

    def names(self, what: What, *hows: How) -> tuple[str, ...]:
        """Names of what changed in one of these ways, sorted."""
        return tuple(c.name for c in self.changes if c.what == what and c.how in hows)

    def change(self, name: str, what: What | None = None) -> Change | None:
        """The change of a relation or connector; where a table became a view, what is there now."""
        found = [c for c in self.changes if c.name == name and what in (None, c.what)]
        return min(found, key=lambda c: c.how == "removed", default=None)

    def to_json(self) -> dict[str, Any]:
        """The form for other programs: lists of names; what is affected counts as modified.

        It has relations and connectors; a changed function is seen by the views that call it.
        """
        result: dict[str, Any] = {
            "program_diff": {
                f"{how}_{what}s": list(self.names(what, *_counted(how)))
                for how in ("added", "modified", "removed")
                for what in _RELATIONS
            },
            "program_diff_error": None,
        }
        for how in ("added", "modified", "removed"):
            for direction, what in _CONNECTORS.items():
                result[f"{how}_{direction}_connectors"] = list(self.names(what, *_counted(how)))
        return dict(sorted(result.items()))

    def to_dict(self) -> dict[str, Any]:
        """Everything, reasons too, as JSON can hold it; `from_dict` reads it back."""
        return {
            "changes": [
                {
                    "name": c.name,
                    "what": c.what,
                    "how": c.how,
                    "reasons": list(c.reasons),
                    **({"is_layout": True} if c.is_layout else {}),
                    **({"kind": c.kind} if c.title != c.what else {}),
                }
                for c in self.changes
            ]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProgramDiff:
        """The diff that `to_dict` made this of."""
        return cls(
            tuple(
                Change(
                    c["name"],
                    c["what"],
                    c["how"],
                    tuple(c["reasons"]),
                    c.get("is_layout", False),
                    c.get("kind", ""),
                )
                for c in data["changes"]
            )
        )


_RELATIONS: tuple[What, ...] = ("table", "view")


def _counted(how: Literal["added", "modified", "removed"]) -> tuple[How, ...]:
    return ("modified", "affected") if how == "modified" else (how,)


def diff_programs(before: Program, after: Program) -> ProgramDiff:
    """What has to change for `before` to become `after`.

    Args:
        before: the program that runs, or the one of an earlier revision.
        after: the program to get to.
    """
    changes: list[Change] = []
    touched: dict[str, Change] = {}
    laid_out: dict[str, Change] = {}
    for name in before.relations.keys() | after.relations.keys():
        old, new = before.relations.get(name), after.relations.get(name)
        if isinstance(old, View) and isinstance(new, View):
            change = _view_change(old, new, before, after)
            if change is not None and change.is_layout:
                laid_out[name] = change
            elif change is not None and old.kind is new.kind and _is_same_text(old, new):
                touched[name] = change
            elif change is not None:
                changes.append(change)
        else:
            changes += _relation_changes(old, new)
    changes += _affected(before, after, changes, touched, laid_out)
    changes += [
        Change(name, "function", how, reasons)
        for name, how, reasons in compare_functions(before, after)
    ]
    changes += _connector_changes("source", before.sources, after.sources)
    changes += _connector_changes("sink", before.sinks, after.sinks)
    return ProgramDiff(tuple(sorted(changes)))


def _view_change(old: View, new: View, before: Program, after: Program) -> Change | None:
    if old == new:
        return None
    is_spelled = old.spelled == new.spelled and old.calls == new.calls
    if fingerprint(old) == fingerprint(new) and (is_spelled or not after.spelling_counts):
        reasons = layout_reasons(old, new)
        return _view(new, "modified", reasons, is_layout=True) if reasons else None
    reasons = (*view_reasons(old, new), *call_reasons(old, new, before, after))
    return _view(new, "modified", reasons)


def _view(view: View, how: How, reasons: tuple[str, ...], *, is_layout: bool = False) -> Change:
    return Change(view.name, "view", how, reasons, is_layout, view.kind.value)


def _is_same_text(old: View, new: View) -> bool:
    """True when only what the inputs are tells the two apart, and not the columns that a star
    stands for."""
    return (
        plain_text(read_query(old.query)) == plain_text(read_query(new.query))
        and old.canonical.split("\n")[1:] == new.canonical.split("\n")[1:]
        and old.columns == new.columns
        and old.calls == new.calls
        and old.spelled.split("\n")[1:] == new.spelled.split("\n")[1:]
    )


def _relation_changes(old: Relation | None, new: Relation | None) -> Iterator[Change]:
    if isinstance(old, Table) and isinstance(new, Table):
        if old != new and fingerprint(old) != fingerprint(new):
            yield Change(new.name, "table", "modified", table_reasons(old, new))
        elif reasons := layout_reasons(old, new):
            yield Change(new.name, "table", "modified", reasons, is_layout=True)
        return
    if old is not None:
        yield Change(old.name, _what(old), "removed", kind=old.kind.value)
    if new is not None:
        yield Change(new.name, _what(new), "added", kind=new.kind.value)


def _what(relation: Relation) -> What:
    return "table" if isinstance(relation, Table) else "view"


def _affected(
    before: Program,
    after: Program,
    changes: Iterable[Change],
    touched: Mapping[str, Change],
    laid_out: Mapping[str, Change],
) -> Iterator[Change]:
    """Views that are themselves unchanged, and read something that isn't, directly or through
    others.

    Those in `touched` have the same text, and another meaning for what they read: they are affected
    by that, and if nothing they read has changed, they count as modified. A query that could not be
    read depends on every name it mentions, so what it read before counts too. Those in `laid_out`
    are only partitioned in another way, and affect nobody unless they are affected themselves.
    """
    words = {"added": "was added", "removed": "was removed"}
    ordered = sorted(changes, key=_removed_first)
    changed = {c.name: words.get(c.how, "changed") for c in ordered if not c.is_layout}
    moved = {c.name for c in ordered if c.is_layout} | laid_out.keys()
    own = {c.name for c in changes}
    for name in after.order:
        if name in own or name not in after.views:
            continue
        reads = (
            after.reads(name) | before.reads(name)
            if name in before.relations
            else after.reads(name)
        )
        reasons = tuple(
            f"reads `{read}`, which {changed.get(read, 'changed')}"
            for read in sorted(reads)
            if read in changed or (read in moved and _sees_files(after, name))
        )
        if reasons:
            changed[name] = "changed"
            own_reasons = laid_out[name].reasons if name in laid_out else ()
            how: How = "modified" if own_reasons else "affected"
            yield _view(after.views[name], how, (*own_reasons, *reasons))
        elif name in touched:
            changed[name] = "changed"
            yield touched[name]
        elif name in laid_out:
            yield laid_out[name]


def _sees_files(program: Program, name: str) -> bool:
    """Whether a view may tell files apart, by itself or by a function that reads for it."""
    view = program.views[name]
    if "_metadata" in read_query(view.query).words:
        return True
    texts = (function.text.lower() for function in program.functions.values())
    return bool(view.calls) and any("_metadata" in text for text in texts)


def _removed_first(change: Change) -> bool:
    return change.how != "removed"


_Connector = TypeVar("_Connector", Source, Sink)


def _connector_changes(
    what: What, before: Mapping[str, _Connector], after: Mapping[str, _Connector]
) -> Iterator[Change]:
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old is None:
            yield Change(name, what, "added")
        elif new is None:
            yield Change(name, what, "removed")
        elif fingerprint(old) != fingerprint(new):
            yield Change(name, what, "modified", connector_reasons(old, new))
