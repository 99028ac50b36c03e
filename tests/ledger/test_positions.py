"""Which commits have passed, and which have not: over restores, and with a log cut short."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.ledger.positions import LogEntry, LostHistory, Versions, all_passed, not_passed


def log(*restored: int | None) -> Mapping[int, LogEntry]:
    """A log of commits, each with the version that it put the table back to."""
    return {n: LogEntry(version is None, version) for n, version in enumerate(restored)}


@given(st.sets(st.integers(0, 40)))
def test_a_set_of_versions_and_its_text_are_one(versions: set[int]) -> None:
    made = Versions().united(versions)
    assert Versions.from_text(str(made)) == made
    assert {v for v in range(42) if v in made} == versions


@pytest.mark.parametrize(
    ("text", "first"), [("", 0), ("0", 1), ("0-5,7", 6), ("2-3", 0), ("0-4", 5)]
)
def test_the_first_version_that_is_missing_is_the_least(text: str, first: int) -> None:
    assert Versions.from_text(text).first_missing == first


def test_what_was_put_back_passes_when_it_is_there_again() -> None:
    # 2 brought rows, 3 took them back, 4 brought others, 5 put 2's back
    commits = log(None, None, None, 1, None, 2)
    passed = Versions.from_text("0-1")
    assert not_passed(commits, 2, passed) == (2,)
    assert not_passed(commits, 4, passed) == (3, 4)
    after = passed.united((3, 4))
    assert str(after) == "0-1,3-4"
    assert not_passed(commits, 5, after) == (2, 5)
    assert str(all_passed(commits, 4)) == "0-1,3-4"


def test_a_log_that_is_cut_short_is_told_unless_all_counts_as_passed() -> None:
    commits = {n: entry for n, entry in log(*[None] * 8).items() if n >= 4}
    assert not_passed(commits, 7, Versions.from_text("0-4")) == (5, 6, 7)
    with pytest.raises(LostHistory) as lost:
        not_passed(commits, 7, Versions.from_text("0-2"))
    assert lost.value.version == 3
    assert str(all_passed(commits, 7)) == "0-7"


@given(st.data())
def test_over_any_history_every_commit_passes_once(data: st.DataObject) -> None:
    entries: list[int | None] = [None]
    passed = Versions()
    seen: list[int] = []
    for number in range(1, data.draw(st.integers(2, 20))):
        entries.append(data.draw(st.one_of(st.none(), st.integers(0, number - 1))))
        if data.draw(st.booleans()):
            new = not_passed(log(*entries), number, passed)
            assert not set(new) & set(seen)
            seen += new
            passed = passed.united(new)
            assert not_passed(log(*entries), number, passed) == ()
