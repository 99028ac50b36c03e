"""The steps of streaming tables: made, gone on with in place, rebuilt, backfilled, put back. Pure.

A streaming table holds what each row gave under the query that was deployed when it came. So a
changed query does not make its rows wrong: by default it goes on where the old one stopped. One
with windows is made anew by default, for its rows are what a query gathered.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from sqlmig.ledger.cut import RelationState
from sqlmig.planning import directives, windows
from sqlmig.planning.draft import Draft
from sqlmig.planning.repetition import find_repetition
from sqlmig.planning.stages import renamed_tables
from sqlmig.planning.steps import Attach, Blocker, Bootstrap, Volume
from sqlmig.planning.stream_steps import AdvanceStream, BackfillStream, EvolveStream, RestoreStream
from sqlmig.planning.undo import find_way_back
from sqlmig.program.canonical import materialization_fingerprint
from sqlmig.program.model import RelationKind, View
from sqlmig.program.windows import read_windows

_KIND = RelationKind.STREAMING_TABLE.value
_STRENGTH = (directives.InPlace, directives.Backfill, directives.Rebuild)


@dataclass(frozen=True)
class Decision:
    """What becomes of a streaming table that is there.

    Args:
        strategy: `in place`, `rebuild` or `backfill`.
        why: in words.
        asked: the directive that asked for it, or None.
        can_restore: it is put back to how this query left it, if nothing was emitted since.
    """

    strategy: str
    why: str
    asked: directives.Strategy | None = None
    can_restore: bool = False


@dataclass(frozen=True)
class Asked:
    """What a hook asks for.

    Args:
        directive: the strategy. where: the hook, in words.
        view: the relation as it is behind the hook.
    """

    directive: directives.Strategy
    where: str
    view: View


def decide(draft: Draft, asked: Mapping[str, Asked]) -> dict[str, Decision]:
    """What becomes of the streaming tables that are there and change, or that a hook names."""
    before, after = draft.request.deployed, draft.target
    renamed = renamed_tables(draft.request.hops)
    decisions: dict[str, Decision] = {}
    for name in draft.target.order:
        view = draft.target.relations[name]
        state = draft.states.get(name)
        if not isinstance(view, View) or not view.is_streaming:
            continue
        if state is None or state.kind != _KIND:
            continue
        made_anew = [
            stream
            for stream in view.streams
            if stream in decisions and decisions[stream].strategy != "in place"
        ]
        if name in asked:
            directive, where = asked[name].directive, asked[name].where
            if not isinstance(directive, directives.Rebuild):
                found = windows.obstacles(before, after, directive, where, renamed)
                draft.blockers.extend(found)
            decisions[name] = Decision(_WORDS[type(directive)], f"asked by {where}", directive)
        elif made_anew:
            decisions[name] = Decision("rebuild", f"its stream `{made_anew[0]}` is made anew")
        elif draft.change("view", name) is None:
            continue
        elif not windows.has_windows(before, after, name):
            decisions[name] = Decision("in place", "it goes on where it stopped")
        elif windows.changes_delay_alone(before, after, name):
            decisions[name] = Decision("in place", windows.DELAYED)
        else:
            decisions[name] = Decision("rebuild", windows.REBUILT, can_restore=True)
    return decisions


_WORDS: Mapping[type[directives.Strategy], str] = {
    directives.InPlace: "in place",
    directives.Rebuild: "rebuild",
    directives.Backfill: "backfill",
}


def asked_strategies(draft: Draft) -> dict[str, Asked]:
    """Relation -> the strategy that hooks ask for; of several the one that redoes most.

    A materialized view can't be backfilled: it is computed from all rows, or goes on.
    """
    found: dict[str, Asked] = {}
    for hop in draft.request.hops:
        where = f"{hop.hook}() of {hop.revision.revision}"
        for directive in hop.directives:
            if not isinstance(directive, directives.Strategy):
                continue
            name = directive.relation
            view = hop.after.views.get(name)
            is_backfill = isinstance(directive, directives.Backfill)
            if view is None or not view.is_stored or (is_backfill and not view.is_streaming):
                what = (
                    f"a {hop.after.relations[name].kind.value}"
                    if name in hop.after.relations
                    else "not there"
                )
                draft.blockers.append(
                    Blocker(
                        f"{where}: op.{_WORDS[type(directive)].replace(' ', '_')} names `{name}`, "
                        f"which is {what} in the program that is gone to",
                        hint="name a streaming table of it"
                        + ("" if is_backfill else ", or a materialized view"),
                    )
                )
                continue
            earlier = found.get(name)
            if earlier is None or _strength(directive) >= _strength(earlier.directive):
                found[name] = Asked(directive, where, view)
    return found


def _strength(directive: directives.Strategy) -> int:
    return _STRENGTH.index(type(directive))


def plan_advances(
    draft: Draft, decisions: Mapping[str, Decision], laid_out: Set[str] = frozenset()
) -> None:
    """Let what came before the change pass under the query deployed then, before tables change.

    Args:
        decisions: of streaming tables, and of materialized views that go on in place.
        laid_out: deployed tables whose rows are written anew in other partitions.
    """
    deployed = draft.request.deployed
    wanted = {n for n, d in decisions.items() if d.strategy in ("in place", "backfill")}
    wanted |= _behind(draft, decisions, wanted)
    for name in deployed.order:
        state = draft.states.get(name)
        if state is None or name in draft.deployment.failures:  # the change may mend it
            continue
        decision = decisions.get(name)
        is_rebuilt = decision is not None and decision.strategy == "rebuild"
        moved: list[str] = []
        if state.takes_in and name in draft.target.views and not is_rebuilt:
            moved = sorted(laid_out & deployed.followed(name))
        at = draft.request.at
        if name in wanted and at is not None:
            parted = tuple(s for s in deployed.views[name].streams if s in wanted)
            draft.add(
                AdvanceStream(name, at.isoformat(), parted),
                "what came before then passes under the query deployed so far; what has passed "
                "since is taken out, and passes again",
            )
            is_moved = True
        elif name in wanted or moved:
            when = "under the query deployed so far"
            if name not in wanted:
                when = f"before `{moved[0]}` is laid out anew"
            draft.add(AdvanceStream(name), f"what came so far passes {when}")
            follows = deployed.followed(name)
            is_moved = any(draft.states[s].content != state.inputs.get(s) for s in follows)
        else:
            continue
        if is_moved:
            state = state.with_rows(-1, None, None)
            draft.states[name] = replace(state, content=f"moved:{name}")


def _behind(draft: Draft, decisions: Mapping[str, Decision], wanted: Set[str]) -> set[str]:
    """The streaming tables on the way to `wanted` that have to take in rows first.

    Those that are made anew: what they take in so is no new row to their readers. And all below a
    materialized view: what it counts so far is then what its own query says of all rows so far.
    """
    deployed = draft.request.deployed
    found: set[str] = set()
    for name in reversed(deployed.order):
        if name not in wanted | found:
            continue
        view = deployed.views[name]
        for read in deployed.followed(name):
            below = deployed.relations[read]
            if not isinstance(below, View) or not below.is_streaming or read not in draft.states:
                continue
            is_anew = read in decisions and decisions[read].strategy == "rebuild"
            if is_anew or not view.is_streaming or name in found:
                found.add(read)
    return found


def plan_stream(draft: Draft, view: View, decisions: dict[str, Decision]) -> None:
    """Add the steps of one streaming table, once its inputs have theirs.

    Args:
        decisions: those of its streams are final; its own may still become another one.
    """
    name = view.name
    decision = decisions.get(name)
    state = draft.states.get(name)
    if state is None or state.kind != _KIND:
        _begin(draft, view)
        return
    if decision is None:
        return
    if decision.asked is None and (decision.strategy == "in place" or decision.can_restore):
        decision = decisions[name] = _again(draft, view, state, decisions) or decision
    if decision.can_restore and _put_back(draft, view, state, is_rebuilt=True):
        return
    if decision.strategy == "rebuild":
        _bootstrap(draft, view, state.folder, _cause(draft, name, decision, "rebuilt"))
    elif isinstance(decision.asked, directives.Backfill):
        _backfill(draft, view, state, decision.asked, _cause(draft, name, decision, "backfilled"))
    else:
        _go_on(draft, view, state, decision)


def _again(
    draft: Draft, view: View, state: RelationState, decisions: Mapping[str, Decision]
) -> Decision | None:
    """The decision where rows that have passed would come a second time.

    What they gave has to go, too.
    """
    for stream in view.streams:
        if stream in decisions and decisions[stream].strategy != "in place":
            return Decision("rebuild", f"its stream `{stream}` is made anew")
    again = find_repetition(draft, view.streams, state)
    if again is None:
        return None
    if not again.is_rebuilt:
        draft.warnings.append(f"`{view.name}` begins empty, as `{again.table}` does")
    return Decision("rebuild", again.why)


def _cause(draft: Draft, name: str, decision: Decision, word: str) -> str:
    cause = draft.cause("view", name)
    return f"{cause}; {word}: {decision.why}" if cause else f"{word}: {decision.why}"


def _begin(draft: Draft, view: View) -> None:
    """A streaming table that is not there: taken up where it stopped, or begun."""
    name = view.name
    kept = draft.kept(draft.request.revision, name)
    if kept is not None and kept.kind == _KIND and _is_other(draft, view, kept):
        cause = draft.cause("view", name) or "it is not in the warehouse"
        _bootstrap(draft, view, kept.folder, f"{cause}; rebuilt: {windows.REBUILT}")
        return
    if kept is not None and kept.kind == _KIND:
        draft.states[name] = kept
        draft.add(
            Attach(name, kept.folder),
            "it goes on where it stopped when this revision was deployed last",
            writes=draft.volume(name, kept),
        )
        if kept.fingerprint != materialization_fingerprint(draft.target, name):
            _go_on(draft, view, kept, Decision("in place", "its query was another one last"))
        return
    cause = draft.cause("view", name) or "it is not in the warehouse"
    _bootstrap(draft, view, draft.new_folder(name), f"{cause}: begun with the earliest row")


def _is_other(draft: Draft, view: View, kept: RelationState) -> bool:
    """Whether one with windows was left by another query."""
    mark = materialization_fingerprint(draft.target, view.name)
    return kept.fingerprint != mark and (
        kept.watermark is not None or read_windows(view) is not None
    )


def _bootstrap(draft: Draft, view: View, folder: str, cause: str) -> None:
    name = view.name
    mark = materialization_fingerprint(draft.target, name)
    state = draft.states.get(name)
    contents = _contents(draft, view)
    draft.states[name] = RelationState(folder, _KIND, -1, f"new:{name}", mark, contents)
    is_there = state is not None and state.folder == folder
    draft.add(
        Bootstrap(name, folder),
        cause,
        reads=_reads(draft, view),
        writes=draft.volume(name, state) if is_there else Volume(name, None, None),
    )


def _go_on(draft: Draft, view: View, state: RelationState, decision: Decision) -> None:
    name = view.name
    failure = draft.deployment.failures.get(name)
    if draft.request.at is None and _put_back(draft, view, state, is_rebuilt=False):
        return
    cause = _cause(draft, name, decision, "in place")
    if failure is not None:
        cause += ", with the rows that the query deployed so far failed on"
    _evolve(draft, view, state, cause)


def _put_back(draft: Draft, view: View, state: RelationState, *, is_rebuilt: bool) -> bool:
    """Let the table be put back to how this query left it; False where there is no way."""
    name = view.name
    mark = materialization_fingerprint(draft.target, name)
    way = find_way_back(state, None, mark) if state.fingerprint != mark else None
    if way is None:
        return False
    draft.states[name] = way.state
    cause = draft.cause("view", name)
    since = "no window has been emitted since" if is_rebuilt else "no row has passed since"
    draft.add(
        RestoreStream(name, state.folder, way.state.version, way.state.content, is_rebuilt),
        f"{cause}; {since}" if cause else since,
        writes=draft.volume(name, way.state),
    )
    return True


def _evolve(draft: Draft, view: View, state: RelationState, cause: str) -> None:
    name = view.name
    is_historical = state.is_historical or _is_historical(draft, name)
    mark = materialization_fingerprint(draft.target, name)
    draft.states[name] = replace(state, fingerprint=mark, inputs=_contents(draft, view))
    draft.add(
        EvolveStream(name, state.folder, is_historical),
        f"{cause}; its rows stay" + (" (historical)" if is_historical else ""),
        writes=draft.volume(name, state),
    )


def _backfill(
    draft: Draft, view: View, state: RelationState, asked: directives.Backfill, cause: str
) -> None:
    name = view.name
    mark = materialization_fingerprint(draft.target, name)
    since, words = windows.begin_of(view, asked.since)
    draft.states[name] = replace(
        state, version=-1, content=f"new:{name}", fingerprint=mark, inputs=_contents(draft, view)
    )
    draft.add(
        BackfillStream(name, state.folder, since, asked.column),
        f"{cause}; rows with `{asked.column}` from {words} on are made anew, "
        "earlier ones stay (historical)",
        reads=_reads(draft, view),
        writes=draft.volume(name, state),
    )


def _is_historical(draft: Draft, name: str) -> bool:
    """Whether what rows give has changed, and not only what the streams look like."""
    change = draft.change("view", name)
    if change is None:
        return False
    if windows.changes_delay_alone(draft.request.deployed, draft.target, name):
        return False
    if change.how == "modified":
        return True
    made_of = draft.target.logical_reads(name)
    return any(draft.change("view", view) is not None for view in made_of)


def _contents(draft: Draft, view: View) -> dict[str, str]:
    return {s: draft.states[s].content for s in view.streams if s in draft.states}


def _reads(draft: Draft, view: View) -> tuple[Volume, ...]:
    reads = sorted(draft.target.stored_reads(view.name))
    return tuple(draft.volume(read, draft.states.get(read)) for read in reads)
