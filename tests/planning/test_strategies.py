"""What a plan says of each relation that changes; the matrix in the docs, cell by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmig.planning.directives import Backfill, InPlace, Rebuild
from sqlmig.planning.explain import to_markdown, to_text
from sqlmig.planning.planner import make_plan
from sqlmig.planning.promises import PROMISES
from sqlmig.planning.relation_plan import RelationPlan
from sqlmig.planning.steps import Blocker, Plan
from sqlmig.planning.strategies import STRATEGIES, explain_relations
from tests.fakes import Pipeline, Revision, World

TABLES = (
    "CREATE TABLE t (a INT, b STRING, at TIMESTAMP);\n"
    "CREATE TABLE t2 (a INT, b STRING, at TIMESTAMP);\n"
    "CREATE TABLE u (a INT, c STRING);\n"
)
QUERIES = {
    "simple": "SELECT a, b FROM t WHERE a > 1",
    "stateful": "SELECT a, count(*) AS n FROM t WHERE a > 1 GROUP BY a",
    "windowed": "SELECT window(at, '1 day') AS w, count(*) AS n FROM t WHERE a > 1 "
    "GROUP BY window(at, '1 day')",
    "joined": "SELECT t.a, c FROM t JOIN u ON t.a = u.a WHERE t.a > 1",
    "multistage": "SELECT max(n) AS n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) WHERE n > 1",
    "nondeterministic": "SELECT a, rand() AS r FROM t WHERE a > 1",
}
CHANGES: dict[str, Callable[[str], str]] = {
    "transparent": lambda query: query.replace("SELECT", "SELECT /*+ BROADCAST(t) */", 1),
    "data selection": lambda query: query.replace("> 1", "> 2"),
    "schema evolution": lambda query: query.replace(" FROM", ", 1 AS extra FROM", 1),
    "source modifying": lambda query: re.sub(r"\bt\b", "t2", query),
    "topology": lambda query: f"SELECT * FROM ({query})",
    "scaling": lambda query: query.replace("SELECT", "SELECT /*+ REPARTITION(2) */", 1),
    "unsupported": lambda query: query.replace("> 1", "> array(1)"),
}


def _matrices() -> dict[str, dict[tuple[str, str], str]]:
    """Kind of relation -> (query, change) -> strategy, as the docs have it."""
    page = (Path(__file__).parents[2] / "docs" / "strategies.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| query \|(.*)\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    found = []
    for head, body in tables:
        changes = [cell.strip() for cell in head.split("|") if cell.strip()]
        cells = {}
        for line in body.splitlines():
            query, *values = [cell.strip() for cell in line.strip("|").split("|")]
            cells.update({(query, c): v for c, v in zip(changes, values, strict=True)})
        found.append(cells)
    assert len(found) == 3
    kept = ("MATERIALIZED VIEW", "MATERIALIZED VIEW with op.in_place", "STREAMING TABLE")
    return dict(zip(kept, found, strict=True))


MATRICES = _matrices()


def _query(kind: str, query: str) -> str:
    """The query over a stream, for a streaming table: `u` is none."""
    if kind == "STREAMING TABLE":
        mark = " WATERMARK at DELAY OF INTERVAL 1 HOUR" if "window(" in query else ""
        query = re.sub(r"FROM (t2?)\b", rf"FROM STREAM \1{mark}", query)
    return TABLES + f"CREATE {kind} v AS {query};\n"


def test_the_matrices_have_each_kind_of_query_and_of_change() -> None:
    for cells in MATRICES.values():
        assert set(cells) == {(query, change) for query in QUERIES for change in CHANGES}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_cell_of_the_matrix_is_what_a_plan_does(kind: str, query: str, change: str) -> None:
    # given
    expected = MATRICES[kind][query, change]
    kind, _, asked = kind.partition(" with ")
    up = (InPlace("v"),) if asked else ()
    before = _query(kind, QUERIES[query])
    after = _query(kind, CHANGES[change](QUERIES[query]))
    made = Pipeline(World(), [Revision("r1", before), Revision("r2", after, up)])
    if made.plan("r1").blockers:
        made = Pipeline(World(), [Revision("r1", TABLES), Revision("r2", after)])
        assert made.plan("r2").blockers
        assert expected == "blocked"
        return
    made.go("r1")

    # when
    plan = made.plan("r2")
    if change == "unsupported":  # what Spark's analyser would say
        wrong = Blocker("`v` compares an int with an array<int>")
        plan = replace(plan, blockers=(*plan.blockers, wrong))
    (relation,) = _explained(made, plan, "r2")

    # then
    assert (relation.taken.name if relation.taken else "blocked") == expected
    assert query in relation.query
    assert change in relation.change
    in_place = next(s for s in relation.strategies if s.name == "in place")
    if asked and change != "unsupported":
        assert in_place.is_possible == (expected == "in place")
    assert [s.name for s in relation.strategies] == list(STRATEGIES[kind.lower()])
    assert all(strategy.reason for strategy in relation.strategies)
    assert [p.name for p in relation.promises] == ([] if expected == "blocked" else list(PROMISES))


STREAM = TABLES + "CREATE STREAMING TABLE s AS SELECT a, at FROM STREAM t WHERE a > 1;\n"
LATER = STREAM.replace("> 1", "> 2")


@pytest.mark.parametrize(
    ("directive", "taken", "has_backfill"),
    [
        (InPlace("s"), "in place", False),
        (Rebuild("s"), "rebuild", True),
        (Backfill("s", "2026-01-01", "at"), "backfill", False),
        (InPlace("v"), "in place", False),
        (Rebuild("v"), "rebuild", True),
    ],
)
def test_what_a_hook_asks_for_is_taken_and_said(
    directive: InPlace | Rebuild | Backfill, taken: str, has_backfill: bool
) -> None:
    # given
    before, after = STREAM, LATER
    if directive.relation == "v":
        before = TABLES + f"CREATE MATERIALIZED VIEW v AS {QUERIES['stateful']};\n"
        after = before.replace("> 1", "> 2")
    made = Pipeline(World(), [Revision("r1", before), Revision("r2", after, (directive,))])
    made.go("r1")

    # when
    (relation,) = _explained(made, made.plan("r2"), "r2")

    # then
    assert relation.taken is not None
    assert relation.taken.name == taken
    assert "asked by up() of r2" in relation.taken.reason
    assert {p.name: p.is_kept for p in relation.promises} == dict.fromkeys(PROMISES, True) | {
        "backfill": has_backfill
    }


WINDOWS = (
    TABLES
    + "CREATE STREAMING TABLE s AS SELECT window.start AS w, max(a) AS m "
    + "FROM STREAM t WATERMARK at DELAY OF INTERVAL 1 HOUR WHERE a > 1 "
    + "GROUP BY window(at, '1 day');\n"
)


@pytest.mark.parametrize(
    ("after", "change", "said"),
    [
        (
            WINDOWS.replace("> 1", "> 2"),
            "data selection",
            {
                "restore": "not",
                "in place": "or: op.in_place keeps the windows that have been emitted",
                "rebuild": "taken: `a > 1` became `2`; rebuilt: its windows gathered rows under "
                "the former query",
                "backfill": "or: op.backfill makes the windows from a time on anew",
            },
        ),
        (
            WINDOWS.replace("window.start AS w, ", ""),
            "schema evolution",
            {
                "in place": "or: op.in_place keeps the windows that have been emitted",
                "backfill": "not: no column of it is the start of a window",
            },
        ),
        (
            WINDOWS.replace("'1 day'", "'1 hour'"),
            "data selection",
            {
                "in place": "not: its windows were 1 day of `t.at`, and become 1 hour of `t.at`",
                "backfill": "not: its windows were 1 day of `t.at`, and become 1 hour of `t.at`",
            },
        ),
        (
            WINDOWS.replace("1 HOUR", "2 HOURS"),
            "data selection",
            {
                "in place": "taken: `t WATERMARK at DELAY OF INTERVAL 1 HOUR` became `t WATERMARK "
                "at DELAY OF INTERVAL 2 HOURS`; in place: only how long it waits for late rows has "
                "changed; its rows stay",
                "rebuild": "or: op.rebuild makes every row anew",
            },
        ),
    ],
)
def test_the_strategies_of_windows_are_said(after: str, change: str, said: dict[str, str]) -> None:
    # given
    made = Pipeline(World(), [Revision("r1", WINDOWS), Revision("r2", after)])
    made.go("r1")

    # when
    (relation,) = _explained(made, made.plan("r2"), "r2")

    # then
    assert relation.query == ("stateful", "windowed")
    assert change in relation.change
    told = {}
    for s in relation.strategies:
        word = "taken" if s.is_taken else "or" if s.is_possible else "not"
        told[s.name] = f"{word}: {s.reason}"
    assert {name: told[name][: len(text)] for name, text in said.items()} == said


def test_tables_views_and_what_comes_and_goes_are_said_too() -> None:
    # given
    before = (
        TABLES
        + "CREATE VIEW p AS SELECT a FROM t;\n"
        + "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM p;\n"
        + "CREATE MATERIALIZED VIEW gone AS SELECT a FROM u;\n"
    )
    after = (
        before.replace("u (a INT, c STRING)", "u (a INT, c STRING, d INT)")
        .replace("t2 (a INT", "t2 (a STRING")
        .replace("p AS SELECT a FROM t", "p AS SELECT a FROM t WHERE a > 1")
        .replace("CREATE MATERIALIZED VIEW gone AS SELECT a FROM u;\n", "")
        + "CREATE MATERIALIZED VIEW new AS SELECT rand() AS r FROM t;\n"
    )
    made = Pipeline(World(), [Revision("r1", before), Revision("r2", after)])
    made.go("r1")
    made.insert("t2", 1)

    # when
    relations = _explained(made, made.plan("r2"), "r2")

    # then
    assert [(r.name, r.kind, r.how, r.taken and r.taken.name) for r in relations] == [
        ("gone", "materialized view", "removed", "detach"),
        ("m", "materialized view", "affected", "rebuild"),
        ("new", "materialized view", "added", "rebuild"),
        ("p", "view", "modified", "define"),
        ("t2", "table", "modified", "cast"),
        ("u", "table", "modified", "alter"),
    ]
    broken = {r.name: [p.name for p in r.promises if not p.is_kept] for r in relations}
    assert broken == {
        "gone": ["backfill", "live"],
        "m": [],
        "new": ["backfill"],
        "p": [],
        "t2": [],
        "u": [],
    }

    # and: back again nothing is computed
    made.go("r2")
    back = {r.name: r.taken and r.taken.name for r in _explained(made, made.plan("r1"), "r1")}
    assert back == {
        "gone": "restore",
        "m": "restore",
        "new": "detach",
        "p": "define",
        "t2": "restore",
        "u": "restore",
    }


def test_an_emptied_table_breaks_promises() -> None:
    # given
    after = TABLES.replace("u (a INT", "u (a DATE")
    made = Pipeline(World(), [Revision("r1", TABLES), Revision("r2", after)])
    made.go("r1")
    made.insert("u", 1)

    # when
    plan = make_plan(replace(made.request("r2"), emptied={"u": "they can't be cast"}))
    (relation,) = _explained(made, plan, "r2")

    # then
    assert relation.taken is not None
    assert relation.taken.name == "empty"
    assert [p.name for p in relation.promises if not p.is_kept] == [
        "backfill",
        "exactly once",
        "live",
    ]


def test_a_plan_tells_it_in_each_form() -> None:
    # given
    made = Pipeline(World(), [Revision("r1", STREAM), Revision("r2", LATER)])
    made.go("r1")
    plan = made.plan("r2")
    plan = replace(plan, relations=_explained(made, plan, "r2"))

    # then
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert "relations:" not in to_text(plan)
    assert """
relations:
  s (streaming table, modified)
      query       simple
      change      data selection
      not         restore: rows have passed since, or it was never at this
                  revision
      taken       in place: `a > 1` became `2`; in place: it goes on where it
                  stopped; its rows stay (historical)
      or          rebuild: op.rebuild makes every row anew
      or          backfill: op.backfill makes the rows from a time on anew
      promises    cascading, exactly once, ordered, live
      not         backfill: rows that came before the change stay as they are
""" in to_text(plan, verbose=True)
    assert (
        "| `s` | simple | data selection | **in place**: `a > 1` became `2`; in place: it goes on "
        "where it stopped; its rows stay (historical) | backfill: rows that came before the change "
        "stay as they are |"
    ) in to_markdown(plan, verbose=True)
    assert "| relation |" not in to_markdown(plan)


def _explained(made: Pipeline, plan: Plan, target: str) -> tuple[RelationPlan, ...]:
    request = made.request(target)
    return explain_relations(request.deployed, request.target, plan)
