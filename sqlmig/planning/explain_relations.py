"""Tells what a plan says of each relation that changes: lines for a terminal, a table for Markdown.
It decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlmig.planning.relation_plan import RelationPlan
from sqlmig.planning.wrapping import wrapped

_MARGIN = 18


def relation_lines(relations: Sequence[RelationPlan]) -> Iterator[str]:
    """The lines of `plan -v`."""
    for relation in relations:
        yield f"  {relation.name} ({relation.kind}, {relation.how})"
        if relation.query:
            yield from _told("query", ", ".join(relation.query))
        yield from _told("change", ", ".join(relation.change))
        for strategy in relation.strategies:
            word = "taken" if strategy.is_taken else "or" if strategy.is_possible else "not"
            yield from _told(word, f"{strategy.name}: {strategy.reason}")
        kept = [promise.name for promise in relation.promises if promise.is_kept]
        if kept:
            yield from _told("promises", ", ".join(kept))
        for promise in relation.promises:
            if not promise.is_kept:
                yield from _told("not", f"{promise.name}: {promise.reason}")


def _told(word: str, text: str) -> list[str]:
    return wrapped(text, f"      {word}".ljust(_MARGIN), " " * _MARGIN)


def relation_table(relations: Sequence[RelationPlan]) -> list[str]:
    """The rows of a Markdown table."""
    lines = ["| relation | query | change | strategy | not promised |", "|---|---|---|---|---|"]
    for relation in relations:
        taken = relation.taken
        strategy = f"**{taken.name}**: {taken.reason}" if taken else "none: the plan is blocked"
        broken = "; ".join(f"{p.name}: {p.reason}" for p in relation.promises if not p.is_kept)
        cells = (
            f"`{relation.name}`",
            ", ".join(relation.query) or relation.kind,
            ", ".join(relation.change),
            strategy,
            broken,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines
