"""The two readers of queries, the one of plain queries and sqlglot's, find the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from sqlmig.program.lexer import tokenize
from sqlmig.program.plain_query import read_plain_query
from sqlmig.program.query import Query, read_query
from sqlmig.program.scopes import read_blocks
from tests.program.queries import Template, templates


class _Described:
    """A query without the numbers of its blocks, inputs, references and stars."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def input(self, i: int | None) -> Any:
        if i is None:
            return None
        item = self.query.inputs[i]
        inner = None if item.block is None else self.block(item.block)
        return (*(v for k, v in vars(item).items() if k != "block"), inner)

    def reference(self, i: int | None) -> Any:
        if i is None:
            return None
        found = self.query.references[i]
        return (found.token, found.name, self.input(found.input), found.is_plain, found.place)

    def star(self, i: int | None) -> Any:
        if i is None:
            return None
        star = self.query.stars[i]
        return (self.input(star.input), star.without, star.is_bare)

    def block(self, i: int) -> Any:
        block = self.query.blocks[i]
        outputs = block.outputs and [
            (o.name, o.is_alias, self.reference(o.reference), self.star(o.star))
            for o in block.outputs
        ]
        return ([self.input(n) for n in block.inputs], outputs, block.like, block.is_plain)

    def all(self) -> Any:
        query = self.query
        return (
            self.block(query.root),
            query.names_are_clear,
            query.suspects,
            sorted(query.aliases),
            sorted(
                str((self.reference(i), self.block(r.block)))
                for i, r in enumerate(query.references)
            ),
            sorted(str((self.star(i), self.block(s.block))) for i, s in enumerate(query.stars)),
            sorted(
                str((self.block(i), None if b.parent is None else self.block(b.parent)))
                for i, b in enumerate(query.blocks)
            ),
        )


def assert_equal(text: str) -> bool:
    """Checks that both readers agree; False when the plain one leaves it to the other."""
    tokens = tuple(tokenize(text))
    plain, full = read_plain_query(text, tokens), read_blocks(text, tokens)
    if plain is None:
        return False
    assert full is not None, text
    assert _Described(plain).all() == _Described(full).all(), text
    return True


@given(templates())
def test_both_readers_find_the_same(template: Template) -> None:
    text = template.text()
    assert assert_equal(text) or "UNION" in text


PLAIN = (
    "SELECT * FROM t",
    "SELECT DISTINCT a, t.* FROM t FULL OUTER JOIN u ON t.a = u.a CROSS JOIN v",
    "SELECT count(*) c, count(DISTINCT a) FROM t",
    "SELECT (SELECT max(b) FROM u WHERE u.a = x.a) AS m, x.b FROM t AS x ORDER BY m DESC NULLS "
    "LAST LIMIT 3",
    "SELECT a FROM (SELECT b a FROM t) q JOIN (SELECT * FROM u) w USING (a, b) LEFT SEMI JOIN z "
    "ON z.a = q.a",
    "WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a) SELECT a.x, b.y FROM a, b WHERE a.i = b.i",
    "SELECT DATE '2020-01-01' d, cast(a AS decimal(10,2)) e, a b, 'x' y, 3 z FROM t",
    "SELECT sum(a) OVER (PARTITION BY b ORDER BY c DESC) w FROM t",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE b END AS k, CASE a WHEN 1 THEN 2 END FROM t WHERE b IS "
    "NOT NULL",
    "SELECT date, t.date, value FROM t GROUP BY date, value HAVING count(*) > 1",
    "SELECT a, -b, -1 FROM t WHERE NOT EXISTS (SELECT 1 FROM u) AND TRUE",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b LIKE 'x%' OR (a, b) IN (SELECT c, d FROM u)",
    "SELECT t.s.f, t.s.f g, s.f FROM t",
    "SELECT name, type FROM STREAM t",
    "SELECT `a` AS `B` FROM `T` AS `X`",
    "SELECT x.a FROM t x JOIN u y ON x.a = y.a, v z",
)
LEFT_TO_SQLGLOT = (
    "SELECT a FROM t UNION SELECT b FROM u",
    "SELECT a END FROM t",
    "SELECT a FROM t AT TIME ZONE",
    "SELECT explode(a) FROM t",
    "SELECT a FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT a FROM t VERSION AS OF 3",
    "SELECT a FROM s.t",
    "SELECT /*+ BROADCAST(t) */ a FROM t",
    "SELECT my_function(a) FROM t",
    "SELECT a::int FROM t",
    "SELECT t.a[0] FROM t",
    "SELECT transform(a, x -> x + 1) AS y FROM t",
    "SELECT interval 5 days FROM t",
    "SELECT a FROM t NATURAL JOIN u",
    "SELECT a FROM (t JOIN u)",
    "SELECT current_date FROM t",
    "SELECT * EXCEPT (a) FROM t",
    "SELECT a FROM t LATERAL VIEW explode(b) u AS c",
    "TABLE t",
    "",
    "SELECT",
    "SELECT (",
    "SELECT a FROM t)",
)


@pytest.mark.parametrize("text", PLAIN)
def test_both_readers_find_the_same_in(text: str) -> None:
    assert assert_equal(text)


@pytest.mark.parametrize("text", LEFT_TO_SQLGLOT)
def test_the_plain_reader_leaves_to_sqlglot(text: str) -> None:
    assert read_plain_query(text, tuple(tokenize(text))) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a FROM STREAM t", ["t"]),
        ("SELECT a FROM STREAM(t) x JOIN STREAM u ON x.a = u.a", ["t", "u"]),
        ("SELECT a FROM stream", ["stream"]),
        ("SELECT a FROM t stream JOIN u ON true", ["t", "u"]),
        ("SELECT a FROM t GROUP BY window(ts, '5 minutes'), a", ["t"]),
        ("WITH t AS (SELECT 1 AS a) SELECT a FROM t", []),
        ("WITH t AS (SELECT a FROM t) SELECT a FROM t", ["t"]),
        ("SELECT a FROM c.s.t JOIN delta.`/x`", []),
        ("SELECT a FROM range(3), t", ["t"]),
        ("SELECT a FROM t x, LATERAL (SELECT x.a FROM u) y", ["t", "u"]),
        ("SELECT (SELECT 1 FROM u) AS a FROM t WHERE b IN (SELECT c FROM w)", ["t", "u", "w"]),
        ("SELECT a FROM (t JOIN u USING (a)) JOIN (w) ON true", ["t", "u", "w"]),
        ("SELECT a FROM t -- FROM x \\\n FROM y\n", ["t"]),
        ("SELECT 'FROM x' AS a FROM t", ["t"]),
    ],
)  # fmt: skip
def test_a_query_reads(text: str, names: list[str]) -> None:
    query = read_query(text)
    assert query.is_read
    assert sorted({name for name, _ in query.relations}) == names


@pytest.mark.parametrize(
    "text", ["TABLE t", "SELECT a FROM t |> WHERE a > 1", "SELECT a b c FROM t"]
)
def test_a_query_that_cannot_be_read_mentions_names(text: str) -> None:
    query = read_query(text)
    assert not query.is_read
    assert "t" in {name for name, _ in query.mentioned}
