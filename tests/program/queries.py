"""Queries that hypothesis makes up over the tables of `pipelines`, in pieces."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

COLUMNS = {
    "students": ("id", "name"),
    "grades": ("student_id", "class", "grade", "class_date"),
    "rooms": ("id", "tags"),
}
ALIASES = ("a1", "b1", "c1", "d1", "e1", "f1")


@dataclass(frozen=True)
class Template:
    """A query as pieces: plain text, `{n}` for the alias of input n, and `?` for a literal.

    Args:
        pieces: words of the query.
        inputs: how many aliases it has.
    """

    pieces: tuple[str, ...]
    inputs: int

    def text(self, aliases: tuple[str, ...] = ALIASES, literal: str = "7") -> str:
        """The query with these aliases, and one literal in place of every `?`."""
        return " ".join(self.pieces).format(*aliases).replace("?", literal)


@st.composite
def templates(draw: st.DrawFn) -> Template:
    """Queries with joins, nested and correlated subqueries, CTEs, unions, windows and stars."""
    count = 0

    def block(depth: int, outer: list[tuple[int, str]]) -> list[str]:
        nonlocal count
        inputs: list[tuple[int, str]] = []
        from_: list[str] = []
        for i in range(draw(st.integers(1, 2))):
            number, count = count, count + 1
            table = draw(st.sampled_from(sorted(COLUMNS)))
            nested = depth > 0 and number < 3 and draw(st.booleans())
            what = ["(", *block(0, []), ")"] if nested else [table]
            if nested:
                table = ""
            from_ += [
                *(["JOIN"] if i else []),
                *what,
                draw(st.sampled_from(["AS", ""])),
                f"{{{number}}}",
            ]
            inputs.append((number, table))
            if i:
                from_ += ["ON", *condition(inputs)]
        items = [
            part
            for _ in range(draw(st.integers(1, 2)))
            for part in (*item(inputs), "AS", draw(st.sampled_from(["o1", "o2", "o3"])), ",")
        ][:-1]
        if draw(st.integers(0, 4)) == 0:
            items = [f"{{{inputs[0][0]}}}.*"]
        where: list[str] = []
        if draw(st.booleans()):
            where = ["WHERE", *condition(inputs + outer)]
            if depth > 0 and count < 4 and draw(st.booleans()):
                where += ["AND", "EXISTS", "(", *block(0, inputs), ")"]
        return ["SELECT", *items, "FROM", *from_, *where]

    def column(inputs: list[tuple[int, str]]) -> str:
        number, table = draw(st.sampled_from(inputs))
        names = COLUMNS.get(table, ("o1",))
        return f"{{{number}}}.{draw(st.sampled_from(names))}"

    def item(inputs: list[tuple[int, str]]) -> list[str]:
        one = column(inputs)
        return draw(
            st.sampled_from(
                [
                    [one],
                    [one, "+", "?"],
                    ["coalesce", "(", one, ",", "?", ")"],
                    ["CASE", "WHEN", one, ">", "?", "THEN", "'x'", "END"],
                    ["sum", "(", one, ")", "OVER", "(", "PARTITION", "BY", column(inputs), ")"],
                    ["cast", "(", one, "AS", "string", ")"],
                    ["nullif", "(", one, ",", "'a -- b'", ")"],
                ]
            )
        )

    def condition(inputs: list[tuple[int, str]]) -> list[str]:
        more = draw(st.sampled_from([[], ["AND", column(inputs), "IN", "(", "?", ",", "2", ")"]]))
        operator = draw(st.sampled_from(["=", ">", "<>", "<=>"]))
        return [column(inputs), operator, column(inputs), *more]

    pieces = block(1, [])
    if count < 5 and draw(st.booleans()):
        pieces += ["UNION", "ALL", *block(0, [])]
    return Template(tuple(piece for piece in pieces if piece), count)
