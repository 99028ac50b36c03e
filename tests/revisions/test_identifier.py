"""What revisions may be called, in alembic's forms; each graph is drawn in its test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmig.errors import RevisionError
from sqlmig.revisions.graph import RevisionGraph
from sqlmig.revisions.identifier import resolve, resolve_all, resolve_range, verify_name
from tests.revisions.graphs import graph_of, random_graphs

LINE = graph_of("aaaa", "bbbb < aaaa", "cccc < bbbb", "dddd < cccc")
BRANCHED = graph_of(
    "root", "b1b1 < root", "b2b2 < b1b1", "c1c1 < root @ tools", "c2c2 < c1c1 @ second"
)
MERGED = graph_of("root", "left < root", "right < root @ tools", "both < left right")


@pytest.mark.parametrize(
    ("text", "deployed", "expected"),
    [
        ("cccc", None, "cccc"),
        ("c", None, "cccc"),
        ("head", None, "dddd"),
        ("heads", None, "dddd"),
        ("base", "cccc", None),
        ("current", "cccc", "cccc"),
        ("current", None, None),
        ("+1", None, "aaaa"),
        ("+2", "bbbb", "dddd"),
        ("-1", "bbbb", "aaaa"),
        ("-2", "bbbb", None),
        ("bb+1", "dddd", "cccc"),
        ("cccc-2", None, "aaaa"),
        ("head-1", None, "cccc"),
        ("head-4", None, None),
        ("base+1", None, "aaaa"),
        ("current+1", "aaaa", "bbbb"),
        ("aaaa@head", None, "dddd"),
        ("dddd@aaaa", None, "aaaa"),
    ],
)
def test_a_revision_of_a_line_has_many_names(
    text: str, deployed: str | None, expected: str | None
) -> None:
    """aaaa -- bbbb -- cccc -- dddd"""
    assert resolve(LINE, text, deployed) == expected


@pytest.mark.parametrize(
    ("text", "deployed", "expected"),
    [
        ("tools", None, "c1c1"),
        ("tools@head", None, "c2c2"),
        ("tools@heads", None, "c2c2"),
        ("tools@base", None, None),
        ("tools@c2", None, "c2c2"),
        ("tools@root", None, "root"),
        ("b1b1@head", None, "b2b2"),
        ("tools@+1", "root", "c1c1"),
        ("tools@+2", "root", "c2c2"),
        ("tools@+1", None, "root"),
        ("tools@+3", None, "c2c2"),
        ("tools@+1", "b2b2", "c1c1"),
        ("tools@head-1", None, "c1c1"),
        ("tools@root+1", None, "c1c1"),
        ("tools@-1", "c2c2", "c1c1"),
    ],
)
def test_a_label_names_a_branch(text: str, deployed: str | None, expected: str | None) -> None:
    """
             b1b1 -- b2b2
           /
      root
           \\
             c1c1 -- c2c2        c1c1 declares `tools`
    """
    assert resolve(BRANCHED, text, deployed) == expected


def test_several_heads_are_listed_with_what_to_do() -> None:
    """
             b1b1 -- b2b2
           /
      root
           \\
             c1c1 -- c2c2
    """
    with pytest.raises(RevisionError) as caught:
        resolve(BRANCHED, "head")

    assert caught.value.message == "`head` is ambiguous, there are 2 heads: `b2b2` and `c2c2`"
    assert caught.value.hint == (
        "join them with `sqlmig merge b2b2 c2c2`, or name one of them: `label@head`, `b2b2`"
    )
    assert resolve_all(BRANCHED, "heads") == ("b2b2", "c2c2")
    assert resolve_all(BRANCHED, "tools@heads") == ("c2c2",)
    assert resolve_all(BRANCHED, "base") == ()
    assert resolve_all(BRANCHED, "tools") == ("c1c1",)


def test_one_step_down_from_a_merge_is_ambiguous() -> None:
    """
             left
           /      \\
      root          both
           \\      /
             right               declares `tools`
    """
    with pytest.raises(RevisionError) as caught:
        resolve(MERGED, "-1", "both")

    assert caught.value.message == (
        "`-1` is an ambiguous walk: `both` has parents `left` and `right`"
    )
    assert caught.value.hint is not None
    assert "`left`" in caught.value.hint


def test_a_label_chooses_the_branch_below_a_merge() -> None:
    """
             left
           /      \\
      root          both
           \\      /
             right               declares `tools`
    """
    assert resolve(MERGED, "tools@-1", "both") == "right"
    assert resolve(MERGED, "tools@both-2") == "root"
    assert resolve(MERGED, "left@-1", "both") == "left"


def test_one_step_up_from_a_branch_point_is_ambiguous() -> None:
    with pytest.raises(RevisionError) as caught:
        resolve(BRANCHED, "+1", "root")

    assert caught.value.message == (
        "`+1` is an ambiguous walk: `root` has children `b1b1` and `c1c1`"
    )


@pytest.mark.parametrize(
    ("text", "deployed", "message"),
    [
        ("+3", "bbbb", "`+3` leads too far: only 2 steps up from `bbbb`"),
        ("-3", "bbbb", "`-3` leads too far: only 2 steps down from `bbbb`"),
        ("base-1", None, "`base-1` leads too far: only 0 steps down from `base`"),
        ("-1", None, "`-1` counts from the deployed revision, and nothing is deployed"),
        ("aaaa:bbbb", None, "`aaaa:bbbb` is a range, and one revision is wanted here"),
        ("eeee", None, "no revision or branch `eeee`"),
        ("", None, "no revision or branch ``"),
        ("tools@head", None, "no revision or branch `tools`"),
        ("+1", "gone", "no revision or branch `gone`"),
    ],
)
def test_what_names_no_revision_is_an_error(text: str, deployed: str | None, message: str) -> None:
    """aaaa -- bbbb -- cccc -- dddd"""
    with pytest.raises(RevisionError) as caught:
        resolve(LINE, text, deployed)

    assert caught.value.message == message


def test_a_revision_that_lies_beside_the_branch_is_an_error() -> None:
    with pytest.raises(RevisionError) as caught:
        resolve(BRANCHED, "tools@b2b2")

    assert caught.value.message == "revision `b2b2` is not on branch `tools`"


def test_steps_up_may_lead_onto_a_branch_from_beside_it() -> None:
    """
             left
           /      \\
      root          both
           \\      /
             right               declares `tools`
    """
    assert resolve(MERGED, "tools@left+1") == "both"


def test_a_prefix_of_several_ids_is_an_error_that_lists_them() -> None:
    graph = graph_of("ab12", "ab34 < ab12", "ab < ab34")

    with pytest.raises(RevisionError) as caught:
        resolve(graph, "a")

    assert caught.value.message == "`a` is ambiguous: `ab`, `ab12` and `ab34` begin with it"
    assert resolve(graph, "ab") == "ab"


def test_in_a_long_list_of_candidates_the_rest_is_counted() -> None:
    graph = graph_of(*(f"a{n}" for n in range(8)))

    with pytest.raises(RevisionError) as caught:
        resolve(graph, "a")

    assert "and 3 more begin with it" in caught.value.message


def test_a_branch_makes_a_prefix_unique() -> None:
    """
             ab12
           /
      root
           \\
             ab34                declares `tools`
    """
    graph = graph_of("root", "ab12 < root", "ab34 < root @ tools")

    assert resolve(graph, "tools@ab") == "ab34"


def test_head_of_an_empty_history_is_base() -> None:
    assert resolve(graph_of(), "head") is None


@pytest.mark.parametrize(
    ("text", "deployed", "expected"),
    [
        (":", None, "dddd cccc bbbb aaaa"),
        ("base:heads", None, "dddd cccc bbbb aaaa"),
        ("bbbb:cccc", None, "cccc bbbb"),
        ("bbbb:", None, "dddd cccc bbbb"),
        (":bbbb", None, "bbbb aaaa"),
        ("cccc:cccc", None, "cccc"),
        # As alembic counts: from the end, both ends included.
        ("-2:", None, "dddd cccc bbbb"),
        ("-2:cccc", None, "cccc bbbb aaaa"),
        ("-1:current", "cccc", "cccc bbbb"),
        ("-9:current", "cccc", "cccc bbbb aaaa"),
        ("aaaa:+2", None, "cccc bbbb aaaa"),
        (":+2", None, "bbbb aaaa"),
        ("cccc:+9", None, "dddd cccc"),
        ("-1:+1", "bbbb", "cccc bbbb aaaa"),
        (":-1", "cccc", "bbbb aaaa"),
        ("+1:", "bbbb", "dddd cccc"),
        (":head-1", None, "cccc bbbb aaaa"),
        ("current:", "bbbb", "dddd cccc bbbb"),
        (":current", None, ""),
        ("base:base", None, ""),
    ],
)
def test_a_range_lists_the_newest_first(text: str, deployed: str | None, expected: str) -> None:
    """aaaa -- bbbb -- cccc -- dddd"""
    assert resolve_range(LINE, text, deployed) == tuple(expected.split())


def test_a_range_to_all_heads_holds_every_branch() -> None:
    assert resolve_range(BRANCHED, ":") == ("c2c2", "c1c1", "b2b2", "b1b1", "root")
    assert resolve_range(BRANCHED, "tools@base:tools@head") == ("c2c2", "c1c1", "root")
    assert resolve_range(BRANCHED, "b1b1:") == ("b2b2", "b1b1")


@pytest.mark.parametrize("text", ["head", "a:b:c", ""])
def test_a_range_without_its_one_colon_is_an_error(text: str) -> None:
    with pytest.raises(RevisionError, match="is not a range"):
        resolve_range(LINE, text)


def test_a_range_from_the_newer_to_the_older_is_an_error() -> None:
    with pytest.raises(RevisionError) as caught:
        resolve_range(LINE, "cccc:bbbb")

    assert caught.value.message == "`cccc` is not an ancestor of `bbbb`"


@pytest.mark.parametrize("name", ["head", "heads", "base", "current", "deployed", "working"])
def test_reserved_words_are_no_ids(name: str) -> None:
    with pytest.raises(RevisionError, match="is a reserved word"):
        verify_name(name)


@pytest.mark.parametrize("name", ["a@b", "a+1", "a-1", "a:b", "", "a b", "é", "a\n"])
def test_ids_hold_letters_digits_and_underscores(name: str) -> None:
    with pytest.raises(RevisionError, match="other characters"):
        verify_name(name)


@given(random_graphs(), st.data())
def test_every_unique_prefix_names_its_revision(graph: RevisionGraph, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(graph.revisions))
    prefix = name[: data.draw(st.integers(1, len(name)))]
    matching = [other for other in graph if other.startswith(prefix)]

    if prefix in graph:
        assert resolve(graph, prefix) == prefix
    elif len(matching) == 1:
        assert resolve(graph, prefix) == name
    else:
        with pytest.raises(RevisionError, match="is ambiguous"):
            resolve(graph, prefix)


@given(random_graphs(), st.data())
def test_a_range_between_two_revisions_is_what_lies_between_them(
    graph: RevisionGraph, data: st.DataObject
) -> None:
    end = data.draw(st.sampled_from(graph.revisions))
    start = data.draw(st.sampled_from(sorted(graph.ancestors(end))))

    found = resolve_range(graph, f"{start}:{end}")

    assert found[0] == end
    assert found[-1] == start
    assert set(found) == graph.ancestors(end) & graph.descendants(start)
