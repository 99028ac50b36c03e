"""Which stored views and streaming tables a tick has to compute again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlmig.ledger.cut import Cut, RelationState
from sqlmig.program.model import Program, View


def stale_order(program: Program) -> Iterator[View]:
    """The materialized views and streaming tables, inputs before readers."""
    for name in program.order:
        view = program.relations[name]
        if isinstance(view, View) and view.is_stored:
            yield view


def is_stale(view: View, state: RelationState, inputs: Mapping[str, str]) -> bool:
    """Whether the contents may differ from the query over `inputs` (input -> content id).

    Contents without a fingerprint are not sqlmig's. Else equal content ids mean equal inputs, and
    the same query over equal inputs gives the same rows, unless it is volatile.

    What takes rows in is stale when what it follows has other contents than those that passed.
    """
    if state.takes_in:
        return dict(state.inputs) != dict(inputs)
    return view.volatile or not state.fingerprint or dict(state.inputs) != dict(inputs)


def has_stale(program: Program, cut: Cut) -> bool:
    """Whether a tick without sources would compute anything, as far as the ledger knows."""
    moved: set[str] = set()
    for view in stale_order(program):
        state = cut.relations.get(view.name)
        reads = program.followed(view.name)
        inputs = {n: cut.relations[n].content for n in reads if n in cut.relations}
        if state is None:
            continue
        is_read = len(inputs) == len(reads)
        if moved & reads or not state.fingerprint or (is_read and dict(state.inputs) != inputs):
            moved.add(view.name)
    return bool(moved)
