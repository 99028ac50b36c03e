"""Canonical text and fingerprints: equal text, equal meaning. It knows tokens and schemas, and no
files.

The canonical text of a query is its own token stream, never SQL that was generated from a syntax
tree: a tree may have lost something. Joined by spaces, tokens can be told apart again, so the text
    loses only what a
rule below drops. Each rule says why two queries that it makes equal give equal rows.

- `layout`: white space and comments are dropped. Spark's lexer drops them before its parser sees
  anything. Hints are kept, for they are tokens.
- `identifier_case`: words and quoted names are put in lower case. Spark compares keywords,
  functions and names without regard to case. The spelling of a name can still become data, in the
  text that `to_json` makes: so it counts, in all queries of a program, when one of them, or a SQL
  function of the program, calls such a function, UNPIVOT, or a function that neither Spark nor the
  program's SQL brings along (`names_become_data`): a function in Python sees names of fields. Then
  `spelled_text` is compared too, where only such keywords are folded as the query uses for no
  column. A materialization's fingerprint always holds it.
- `quoting`: backticks are dropped from a name that is a plain word and no keyword. To Spark's
  parser, such a word is the same identifier with them and without.
- `alias_names`: the name of an input of FROM becomes its number, `AS` is dropped, and an input
  without an alias is numbered as if it had its own name as one. Names of inputs are bound
  variables: they can be renamed freely when every use is known, none is captured, and none can
      become data (Spark's names for unnamed columns leave
  them out). Where that isn't certain, all of them stay as they are (`Lineage.aliases_are_safe`).
- `star`: nothing is dropped; the columns that each `*` stands for are added, or where they aren't
  known, the fingerprint of the relation that gives them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from sqlmig.program.lexer import QUOTED, WORD, Token
from sqlmig.program.lineage import Columns, Lineage, visible_inputs
from sqlmig.program.model import Call, Function, Program, Relation, Sink, Source, Table, View
from sqlmig.program.query import Query
from sqlmig.program.vocabulary import FUNCTIONS, KEYWORDS

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMES_BECOME_DATA = frozenset(
    """
    json_object_keys reflect java_method try_reflect schema_of_avro schema_of_csv schema_of_json
    schema_of_variant schema_of_variant_agg schema_of_xml to_avro to_csv to_json to_protobuf
    to_variant_object to_xml typeof
    """.split()
)
# Keywords whose letter case never counts, unless the query also has a column of that name.
_CLAUSES = frozenset(
    """
    and as asc between by case cross desc distinct else end except exists from full group having
    in inner intersect is join left like limit not null on or order outer over partition right
    select semi then union using when where with
    """.split()
)


def names_become_data(queries: Iterable[Query], known: Iterable[str] = ()) -> bool:
    """True when the spelling of names can become data somewhere in a program.

    Args:
        queries: its queries, and the bodies of its functions in SQL.
        known: the names of those functions.
    """
    harmless = FUNCTIONS.union(known)
    return any(
        not query.functions <= harmless
        or not query.functions.isdisjoint(_NAMES_BECOME_DATA)
        or "unpivot" in query.words
        for query in queries
    )


def canonical_text(lineage: Lineage, upstream: Mapping[str, str], reads: Iterable[str]) -> str:
    """The canonical text of a query.

    Args:
        lineage: the query, and the columns of what it reads.
        upstream: canonical text of the views that it reads.
        reads: the names of all relations that it reads.
    """
    text = _token_texts(lineage.query, lineage.aliases_are_safe)[0]
    stars = list(_star_texts(lineage, upstream, sorted(reads)))
    return "\n".join((text, *stars)) if stars else text


def spelled_text(lineage: Lineage) -> str:
    """The canonical text without its stars, and with the letter case of names that may become
    data."""
    return _token_texts(lineage.query, lineage.aliases_are_safe)[1]


def plain_text(query: Query) -> str:
    """The text without stars, with aliases and letter case: it depends on no schema."""
    return _token_texts(query, False)[1]


def folded_text(query: Query) -> str:
    """The text without stars, with aliases, in lower case: it depends on no schema."""
    return _token_texts(query, False)[0]


_memo: dict[tuple[str, bool], tuple[str, str]] = {}


def _token_texts(query: Query, numbered: bool) -> tuple[str, str]:
    """The canonical tokens, joined: in lower case, and with the case of names that may become
    data."""
    key = (query.text, numbered)
    found = _memo.get(key)
    if found is None:
        if len(_memo) > 50_000:
            _memo.clear()
        found = _memo[key] = _join_tokens(query, numbered)
    return found


def _join_tokens(query: Query, numbered: bool) -> tuple[str, str]:
    numbers = _numbers(query) if numbered else {}
    explicit = {item.name_token for item in query.inputs if item.is_explicit}
    implicit = {item.name_token for item in query.inputs if not item.is_explicit}
    folded: list[str] = []
    spelled: list[str] = []
    for i, token in enumerate(query.tokens):
        number = numbers.get(i)
        if number is None or i in implicit:
            text = token.text
            lower = text
            if token.kind == WORD:
                lower = text.lower() if text.isascii() else text
                if numbered and lower == "as" and i + 1 in explicit:
                    continue
                if lower != text:
                    text = _spelled(query, i, text, lower)
            elif token.kind == QUOTED:
                text = _unquoted(token)
                lower = text.lower() if text.isascii() else text
            folded.append(lower)
            spelled.append(text)
        if number is not None:
            folded.append(number)
            spelled.append(number)
    return " ".join(folded), " ".join(spelled)


def _numbers(query: Query) -> dict[int, str]:
    """Token -> `#number` of the input that it names, numbered in the order of the text."""
    order = sorted(i for i, item in enumerate(query.inputs) if item.name_token is not None)
    order.sort(key=lambda i: query.inputs[i].name_token or 0)
    number = {i: f"#{n}" for n, i in enumerate(order, 1)}
    numbers = {query.inputs[i].name_token: text for i, text in number.items()}
    for reference in query.references:
        if reference.input is not None:
            numbers[reference.token] = number[reference.input]
    return {token: text for token, text in numbers.items() if token is not None}


def _unquoted(token: Token) -> str:
    name = token.name
    return name if _PLAIN.fullmatch(name) and name.lower() not in KEYWORDS else token.text


def _spelled(query: Query, index: int, text: str, lower: str) -> str:
    """A word where spelling counts: folded only when it can't name a column."""
    tokens = query.tokens
    if not query.is_read or (index and tokens[index - 1].text == "."):
        return text
    if lower in _CLAUSES and lower not in query.named:
        return lower
    is_call = index + 1 < len(tokens) and tokens[index + 1].text == "("
    return lower if is_call and lower in FUNCTIONS else text


def _star_texts(lineage: Lineage, upstream: Mapping[str, str], reads: list[str]) -> Iterator[str]:
    query = lineage.query
    if not query.is_read:
        if any(token.text == "*" for token in query.tokens):
            for name in reads:
                known = _columns_text(lineage.columns_of_relation(name))
                yield f"* {name} {known or _hash(upstream.get(name, ''))}"
        return
    for star in query.stars:
        inputs = (
            (star.input,) if star.input is not None else tuple(visible_inputs(query, star.block))
        )
        parts = []
        for i in inputs:
            text = _columns_text(lineage.input_columns(i))
            relation = query.inputs[i].relation
            if text is None and relation is not None:
                text = _hash(upstream.get(relation, ""))
            parts.append(text or "?")
        yield f"* {' '.join(parts)}"


@lru_cache(maxsize=4096)
def _columns_text(columns: Columns | None) -> str | None:
    if columns is None or any(column.name is None for column in columns):
        return None
    return "(" + ", ".join(f"{_quoted(name or '')} {type_ or '?'}" for name, type_ in columns) + ")"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _hash(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:16]


def fingerprint(part: Relation | Source | Sink) -> str:
    """The fingerprint of a relation or connector: equal for equal meaning. 16 hexadecimal digits.

    The text of a view's COMMENT is no part of it; a table's is, for it is kept with the table.
    """
    match part:
        case Table():
            columns = [
                repr((c.name.lower(), c.type, c.nullable, c.default, c.comment))
                for c in part.columns
            ]
            key = repr(tuple(name.lower() for name in part.primary_key))
            return _hash("table", key, repr(part.comment), *columns)
        case View():
            columns = [repr(tuple(c.lower() for c in part.columns))]
            return _hash(part.kind.value, *columns, part.canonical, *calls_text(part.calls))
        case Source():
            kept = () if part.retain_raw is None else (f"retain raw {part.retain_raw}",)
            return _hash("source", part.table, part.format, repr(part.options), *kept)
        case Sink():
            return _hash("sink", part.relation, part.format, repr(part.options))


def calls_text(calls: Iterable[Call]) -> tuple[str, ...]:
    """What the functions that a query calls add to its fingerprint; nothing where it has none."""
    return tuple(f"calls {call.name} {call.mark}" for call in calls)


def function_marks(function: Function, called: Iterable[Function]) -> tuple[str, str]:
    """The fingerprints of a function and of all that it calls, which have theirs already.

    The second one counts the letter case of names. A comment is no part of them.
    """
    others = sorted(called, key=lambda f: f.name)
    head = ("function", function.language.value, repr(function.packages))
    return (
        _hash(*head, function.signature, function.body, *(f"{f.name} {f.mark}" for f in others)),
        _hash(*head, function.spelled, *(f"{f.name} {f.spelled_mark}" for f in others)),
    )


def sink_fingerprint(sink: Sink, key: tuple[str, ...]) -> str:
    """The fingerprint of what a sink sends of given contents, and where to: its definition and key.

    What it does in a cutover is no part of it, nor whether its key is its own or its relation's.

    Args:
        key: the columns that name a row, which may come from the relation's primary key.
    """
    apart = ("key", "cutover", "compatibility")
    options = tuple((name, text) for name, text in sink.options if name.lower() not in apart)
    own = fingerprint(replace(sink, options=options))
    return _hash(own, repr(tuple(name.lower() for name in key)))


def materialization_fingerprint(program: Program, name: str) -> str:
    """The fingerprint of what a stored view computes: its query and those of the logical views that
    it reads.

    Of the stored relations at the leaves, it holds the names and the columns that are known, not
    how they come about: together with their Delta versions it tells whether the contents are still
    right.
    """
    found = {
        read: f"stored {_schema_text(program.relations[read])}"
        for read in program.stored_reads(name)
    }
    for made_of in (name, *program.logical_reads(name)):
        view = program.views[made_of]
        spelled = [f"calls {call.name} {call.spelled_mark}" for call in view.calls]
        found[made_of] = _hash(fingerprint(view), view.spelled, *spelled)
    parts = [text for key in sorted(found) for text in (key, found[key])]
    return _hash(name, *parts)


def _schema_text(relation: Relation) -> str:
    if isinstance(relation, Table):
        return repr([(column.name, column.type) for column in relation.columns])
    return repr(list(relation.output or ()))
