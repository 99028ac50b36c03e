"""What changed in the functions of a program, and what that means for the views that call them, in
words. It decides nothing: equal fingerprints mean equal functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sqlmig.program.model import Function, Language, Program, View
from sqlmig.program.text_changes import text_changes

How = Literal["added", "removed", "modified", "affected"]


def compare_functions(
    before: Program, after: Program
) -> Iterator[tuple[str, How, tuple[str, ...]]]:
    """Name, how it changed, and reasons, for each function that differs, sorted by name.

    One that calls a function which changed is affected; those of Spark's own never change.
    """
    for name in sorted(before.functions.keys() | after.functions.keys()):
        old, new = before.functions.get(name), after.functions.get(name)
        if old is None:
            yield name, "added", ()
        elif new is None:
            yield name, "removed", ()
        elif not _is_same(old, new, after.spelling_counts):
            reasons = _own_reasons(old, new, after.spelling_counts)
            how: How = "modified" if reasons else "affected"
            yield name, how, reasons or (f"`{name}` {_why(name, before, after, '')}",)


def call_reasons(old: View, new: View, before: Program, after: Program) -> tuple[str, ...]:
    """Why a view is another one although it calls the same functions, or calls them in vain."""
    was, now = ({call.name: call for call in view.calls} for view in (old, new))
    is_same_text = old.canonical == new.canonical
    reasons = []
    for name in sorted(was.keys() | now.keys()):
        if name in was and name in now:
            if was[name].mark != now[name].mark or (
                after.spelling_counts and was[name] != now[name]
            ):
                reasons.append(f"calls `{name}`, {_why(name, before, after, 'which')}")
        elif is_same_text or (name not in before.functions and name in now):
            word = "added" if name in now else "removed"
            reasons.append(f"calls `{name}`, which was {word}")
    return tuple(reasons)


def _is_same(old: Function, new: Function, spelling: bool) -> bool:
    return old.mark == new.mark and (not spelling or old.spelled_mark == new.spelled_mark)


def _own_reasons(old: Function, new: Function, spelling: bool) -> tuple[str, ...]:
    """What changed in the function itself."""
    reasons: list[str] = []
    if old.language is not new.language:
        reasons.append(f"is written in {new.language.value} (was {old.language.value})")
    elif old.signature != new.signature:
        reasons.append(f"signature became `{new.signature}` (was `{old.signature}`)")
    if old.language is new.language is Language.SQL and old.body != new.body:
        reasons += text_changes(old.shown, new.shown) or ["its body changed"]
    elif old.language is new.language and old.body != new.body:
        reasons.append("its body changed, or what that depends on in its file")
    reasons += _package_reasons(old, new)
    if not reasons and spelling and _is_spelled_otherwise(old, new):
        reasons.append(
            "letter case of names changed, and a query of the program turns names into data"
        )
    return tuple(reasons)


def _is_spelled_otherwise(old: Function, new: Function) -> bool:
    return old.language is new.language and old.spelled != new.spelled


def _package_reasons(old: Function, new: Function) -> list[str]:
    was, now = (dict(_pin(package) for package in f.packages) for f in (old, new))
    reasons = []
    for name in sorted(was.keys() | now.keys()):
        if name not in was:
            reasons.append(f"package `{name}` pinned to {now[name]}")
        elif name not in now:
            reasons.append(f"package `{name}` is no longer pinned")
        elif was[name] != now[name]:
            reasons.append(f"package `{name}` became {now[name]} (was {was[name]})")
    return reasons


def _pin(package: str) -> tuple[str, str]:
    name, _, version = package.partition("==")
    return name, version


def _why(name: str, before: Program, after: Program, relative: str) -> str:
    """`whose body changed`, or `which calls g, whose body changed`; without the first word where
    `relative` is ''."""
    old, new = before.functions[name], after.functions[name]
    parts = []
    if old.language is not new.language:
        parts.append("language")
    elif old.signature != new.signature:
        parts.append("signature")
    if old.language is new.language and (
        old.body != new.body or (not parts and _is_spelled_otherwise(old, new))
    ):
        parts.append("body")
    if old.packages != new.packages:
        names = [r.split("`")[1] for r in _package_reasons(old, new)]
        parts.append(f"pinned version of {' and '.join(f'`{n}`' for n in names)}")
    if parts:
        return f"whose {' and '.join(parts)} changed"
    for other in sorted(old.calls | new.calls):
        word = f"{relative} calls `{other}`, ".lstrip()
        if other not in before.functions:
            return f"{word}which was added"
        if other not in after.functions:
            return f"{word}which was removed"
        if not _is_same(before.functions[other], after.functions[other], after.spelling_counts):
            return word + _why(other, before, after, "which")
    return "which changed"
