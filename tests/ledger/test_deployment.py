"""Whether contents were computed from the newest rows, as far as content ids tell."""

from __future__ import annotations

from sqlmig.ledger.cut import RelationState
from sqlmig.ledger.deployment import is_current


def view(name: str, fingerprint: str = "f", **inputs: str) -> RelationState:
    """A view in its third version."""
    return RelationState(name, "materialized view", 3, f"{name}@3", fingerprint, inputs)


def test_a_view_is_current_if_it_was_computed_from_what_its_inputs_hold_and_they_were_too() -> None:
    relations = {
        "t": RelationState("t", "table", 5, "t@5", "f"),
        "v": view("v", t="t@5"),
        "old": view("old", t="t@4"),
        "w": view("w", v="v@3", t="t@5"),
        "of_old": view("of_old", old="old@3"),
        "foreign": view("foreign", fingerprint="", t="t@5"),
        "alone": view("alone", gone="gone@1"),
    }
    found = {name: is_current(relations, name) for name in relations}
    assert found == {
        "t": True,
        "v": True,
        "old": False,
        "w": True,
        "of_old": False,
        "foreign": False,
        "alone": True,
    }
    assert is_current(relations, "unknown")
