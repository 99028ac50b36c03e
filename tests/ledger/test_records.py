"""Records and cuts: what is written is read back, and nothing of a cut gets lost."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sqlmig.ledger.cut import ConnectorState, Cut, RelationState
from sqlmig.ledger.records import AppliedRevision, Owner
from sqlmig.ledger.sink_state import Batch, Owed, PinnedContents, SinkState
from tests.ledger.samples import state

_names = st.text(min_size=1, max_size=8)
_numbers = st.integers(0, 2**40)


def _relation(
    earlier: st.SearchStrategy[RelationState | None],
) -> st.SearchStrategy[RelationState]:
    return st.builds(
        RelationState,
        folder=_names,
        kind=st.sampled_from(["table", "materialized view"]),
        version=_numbers,
        content=_names,
        fingerprint=_names,
        inputs=st.dictionaries(_names, _names, max_size=3),
        rows=st.none() | _numbers,
        bytes=st.none() | _numbers,
        altered_from=earlier,
        is_emptied=st.booleans(),
        taken_back=earlier,
    )


_relations = _relation(st.none() | _relation(st.none()))
_connectors = st.builds(
    ConnectorState,
    _names,
    _numbers,
    _names,
    rows=_numbers,
    rejected=_numbers,
    behind=st.none() | _numbers,
)
_contents = st.builds(PinnedContents, _names, _numbers, _names)
_owed = st.builds(Owed, st.none() | _contents, _contents, st.booleans())
_sinks = st.builds(
    SinkState,
    *(_names, _numbers, _names, _names),
    sent=st.none() | _contents,
    batch=_numbers,
    rows=_numbers,
    sent_at=st.none() | _names,
    mode=st.sampled_from(("difference", "snapshot", "continue")),
    owed=st.lists(_owed, max_size=2).map(tuple),
    sends_all=st.booleans(),
    is_continued=st.booleans(),
)
_cuts = st.builds(
    Cut,
    relations=st.dictionaries(_names, _relations, max_size=2),
    connectors=st.dictionaries(_names, _connectors, max_size=3),
    detached=st.dictionaries(_names, _relations, max_size=2),
    detached_connectors=st.dictionaries(_names, _connectors, max_size=3),
    sinks=st.dictionaries(_names, _sinks, max_size=2),
    detached_sinks=st.dictionaries(_names, _sinks, max_size=2),
)


@given(_cuts)
def test_a_cut_comes_back_from_json_as_it_was(cut: Cut) -> None:
    assert Cut.from_dict(json.loads(json.dumps(cut.to_dict()))) == cut


@given(_cuts)
def test_a_cut_is_written_sorted(cut: Cut) -> None:
    for part in cut.to_dict().values():
        assert list(part) == sorted(part)


@given(
    st.builds(Batch, _numbers, st.none() | _contents, _contents, st.none(), is_whole=st.booleans())
)
def test_a_batch_comes_back_from_json(batch: Batch) -> None:
    assert Batch.from_dict(json.loads(json.dumps(batch.to_dict()))) == batch


def test_a_sink_pins_the_contents_that_it_has_yet_to_read() -> None:
    one, two, three = (PinnedContents("t", n, f"t@{n}") for n in (1, 2, 3))
    assert SinkState("t.k", 1, "f", "a").pinned == ()
    state = SinkState("t.k", 1, "f", "a", three, owed=(Owed(None, one), Owed(one, two)))
    assert state.pinned == (one, one, two, three)


def test_a_cut_without_sinks_is_written_as_before_there_were_any() -> None:
    assert Cut(connectors={"t.s": ConnectorState("t.s", 1, "f")}).to_dict().keys() == {"connectors"}
    assert SinkState("t.k", 1, "f", "run/3").to_dict().keys() == {
        "folder",
        "generation",
        "fingerprint",
        "id",
    }


@given(
    st.builds(
        AppliedRevision,
        *(_names, st.tuples(_names), st.just(()), st.tuples(_names, _names)),
        *(_names, _names, _names),
    )
)
def test_an_applied_revision_comes_back_from_json(revision: AppliedRevision) -> None:
    assert AppliedRevision.from_dict(json.loads(json.dumps(revision.to_dict()))) == revision


def test_an_owner_comes_back_from_json() -> None:
    owner = Owner("token", "host", 1, "now")
    assert Owner.from_dict(json.loads(json.dumps(owner.to_dict()))) == owner


def test_a_relation_that_gets_another_folder_leaves_the_old_one_detached() -> None:
    cut = Cut().with_relation("t", state("t", 3)).with_relation("t", state("t__2"))
    assert cut.relations == {"t": state("t__2")}
    assert cut.detached == {"t": state("t", 3)}


def test_a_detached_folder_that_is_used_again_is_detached_no_more() -> None:
    cut = Cut().with_relation("t", state("t")).without_relation("t")
    assert cut.detached == {"t": state("t")}
    assert cut.with_relation("t", state("t")).detached == {}


def test_to_detach_what_is_not_there_changes_nothing() -> None:
    assert Cut().without_relation("t") == Cut()
    assert Cut().without_connector("t.s") == Cut()


def test_a_connector_that_begins_again_leaves_its_old_offsets_detached() -> None:
    first, second = ConnectorState("t.s", 1, "f"), ConnectorState("t.s", 2, "g")
    cut = Cut().with_connector("t.s", first).with_connector("t.s", second)
    assert cut.detached_connectors == {"t.s/1": first}
    assert cut.without_connector("t.s").detached_connectors == {"t.s/1": first, "t.s/2": second}


def test_offsets_that_go_on_under_another_name_are_not_detached() -> None:
    """A table was renamed: its source goes on, and its old name is taken off."""
    offsets = ConnectorState("t.s", 1, "f")
    cut = Cut(connectors={"t.s": offsets}).with_connector("u.s", offsets).without_connector("t.s")
    assert cut.connectors == {"u.s": offsets}
    assert cut.detached_connectors == {}


def test_a_sink_that_begins_again_leaves_how_far_it_was_detached() -> None:
    first = SinkState("t.k", 1, "f", "a", PinnedContents("t", 3, "t@3"), 2, 7)
    second = SinkState("t.k", 2, "g", "b")
    cut = Cut().with_sink("t.k", first).with_sink("t.k", second)
    assert cut.detached_sinks == {"t.k/1": first}
    assert cut.with_sink("t.k", first).detached_sinks == {"t.k/2": second}
    assert cut.without_sink("t.k").detached_sinks == {"t.k/1": first, "t.k/2": second}
    assert Cut().without_sink("t.k") == Cut()


def test_rows_that_did_not_move_change_nothing() -> None:
    before = state("t", 4, altered_from=state("t", 3))
    assert before.with_rows(4, 9, 9) is before


def test_moved_rows_have_another_content_id_and_what_was_altered_is_forgotten() -> None:
    before = state("t", 4, altered_from=state("t", 3), taken_back=state("t", 2))
    after = before.with_rows(5, 2, 16)
    assert after == state("t", 5, rows=2, bytes=16)
    assert after.content == "t@5"


def test_what_was_emptied_stays_known_when_rows_come() -> None:
    """a --emptied--> b --altered--> c, then rows come to c: a is known, b is not."""
    a = state("t", 1, fingerprint="a")
    b = state("t", 2, fingerprint="b", altered_from=a, is_emptied=True)
    c = state("t", 3, fingerprint="c", altered_from=b)
    after = c.with_rows(4, 1, 8)
    assert (after.altered_from, after.is_emptied) == (a, True)
    assert after.fingerprint == "c"
