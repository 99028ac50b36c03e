"""What changed between two versions of a query's text, in a few readable words. It knows tokens,
and no meaning.

The stretches that differ are found by difflib over tokens, as it finds them over lines, and widened
to the expression that they stand in.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from sqlmig.program.lexer import NUMBER, QUOTED, STRING, SYMBOL, WORD, LexError, Token, tokenize

_LONGEST = 80
_MOST_TOKENS = 2000
_COMPARISONS = frozenset(
    ("=", "==", "<", "<=", ">", ">=", "<>", "!=", "<=>", "LIKE", "ILIKE", "RLIKE")
)
_BOUNDARIES = frozenset(
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT UNION EXCEPT INTERSECT MINUS JOIN INNER LEFT "
    "RIGHT FULL CROSS NATURAL SEMI ANTI OUTER ON USING AND OR WITH VALUES LATERAL QUALIFY WINDOW "
    "SORT DISTRIBUTE CLUSTER WHEN THEN ELSE OFFSET OVER PARTITION ALL DISTINCT".split()
)
_CLAUSES = frozenset("FROM WHERE GROUP HAVING ORDER LIMIT UNION JOIN ON LATERAL QUALIFY".split())
_Span = tuple[int, int]


def text_changes(before: str, after: str) -> list[str]:
    """The changes from one query to another, in the order of the text; [] when only layout or
    names' case differ."""
    try:
        old, new = tokenize(before), tokenize(after)
    except LexError:
        return ["its query changed"]
    if len(old) + len(new) > _MOST_TOKENS:
        return ["its query changed"]
    changes = []
    for old_span, new_span in _differing(old, new):
        changes.append(_describe(old, old_span, new, new_span))
    return list(dict.fromkeys(change for change in changes if change))


def _key(token: Token) -> str:
    if token.kind == WORD:
        return token.text.lower()
    if token.kind == QUOTED and token.name.isidentifier():
        return token.name.lower()
    return token.text


def _differing(old: list[Token], new: list[Token]) -> list[tuple[_Span, _Span]]:
    """Stretches that differ; near ones inside one expression are taken together."""
    matcher = SequenceMatcher(None, [_key(t) for t in old], [_key(t) for t in new], autojunk=False)
    spans: list[tuple[_Span, _Span]] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        if spans and i - spans[-1][0][1] <= 2 and not _has_boundary(old[spans[-1][0][1] : i]):
            spans[-1] = ((spans[-1][0][0], j), (spans[-1][1][0], m))
        else:
            spans.append(((i, j), (k, m)))
    return spans


def _has_boundary(tokens: Sequence[Token]) -> bool:
    return any(token.word in _BOUNDARIES or token.text == "," for token in tokens)


def _describe(old: list[Token], old_span: _Span, new: list[Token], new_span: _Span) -> str:
    if old_span[0] == old_span[1]:
        return _one_sided(new, new_span, "added") or _widened(old, old_span, new, new_span)
    if new_span[0] == new_span[1]:
        return _one_sided(old, old_span, "removed") or _widened(old, old_span, new, new_span)
    if _is_literal(old, old_span) and _is_literal(new, new_span):
        start = _comparison_start(old, old_span[0])
        if start is not None:
            whole = _text(old[start : old_span[1]])
            return f"`{whole}` became `{_text(new[slice(*new_span)])}`"
    return _widened(old, old_span, new, new_span)


def _is_literal(tokens: list[Token], span: _Span) -> bool:
    return span[1] - span[0] == 1 and tokens[span[0]].kind in (STRING, NUMBER)


def _comparison_start(tokens: list[Token], literal: int) -> int | None:
    """Where the comparison begins whose right side is the literal, when its left side is a plain
    name."""
    start = literal - 1
    if start >= 0 and tokens[start].word in ("DATE", "TIMESTAMP", "INTERVAL", "-"):
        start -= 1
    if start < 1 or tokens[start].word not in _COMPARISONS or not tokens[start - 1].is_name:
        return None
    start -= 1
    while start >= 2 and tokens[start - 1].text == "." and tokens[start - 2].is_name:
        start -= 2
    return start


def _one_sided(tokens: list[Token], span: _Span, word: str) -> str:
    """Words for a whole item or clause that came or went; "" when it is only a part of an
    expression."""
    start, end = span
    while start < end and tokens[start].text == ",":
        start += 1
    while end > start and tokens[end - 1].text == ",":
        end -= 1
    if end - start < span[1] - span[0] or (start == span[0] and _stands_alone(tokens, span)):
        return f"`{_short(_text(tokens[start:end]))}` {word}" if start < end else f"`,` {word}"
    return ""


def _stands_alone(tokens: list[Token], span: _Span) -> bool:
    first = tokens[span[0]]
    return first.word in _CLAUSES or first.word in (
        "AND",
        "OR",
        "DISTINCT",
        "LEFT",
        "RIGHT",
        "FULL",
        "CROSS",
    )


def _widened(old: list[Token], old_span: _Span, new: list[Token], new_span: _Span) -> str:
    """Both sides, widened by what they share up to the borders of the expression."""
    left = 0
    while (
        old_span[0] - left > 0
        and new_span[0] - left > 0
        and left < 6
        and not _ends_expression(old[old_span[0] - left - 1], 1)
    ):
        left += 1
    right = 0
    while (
        old_span[1] + right < len(old)
        and new_span[1] + right < len(new)
        and right < 6
        and not _ends_expression(old[old_span[1] + right], -1)
    ):
        right += 1
    if left == right == 0 and (old_span[0] == old_span[1] or new_span[0] == new_span[1]):
        # One side would be empty: show at least one word of its neighbourhood.
        left = 1 if old_span[0] > 0 and new_span[0] > 0 else 0
        right = 0 if left else 1
    was = _short(_text(old[old_span[0] - left : old_span[1] + right]))
    now = _short(_text(new[new_span[0] - left : new_span[1] + right]))
    return f"`{was}` became `{now}`"


def _ends_expression(token: Token, _direction: int) -> bool:
    return token.word in _BOUNDARIES or (
        token.kind == SYMBOL and token.text in (",", "(", ")", ";")
    )


def _text(tokens: Sequence[Token]) -> str:
    """The tokens as the user spaced them; any white space or comment between two is one space."""
    parts: list[str] = []
    for i, token in enumerate(tokens):
        if i and token.start > tokens[i - 1].end:
            parts.append(" ")
        parts.append(" ".join(token.text.split()) if token.kind == STRING else token.text)
    return "".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
