"""The readers of a plan that tell it: text and Markdown. They decide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sqlmig.planning.explain_preview import preview_lines, preview_markdown
from sqlmig.planning.explain_relations import relation_lines, relation_table
from sqlmig.planning.parting import in_words
from sqlmig.planning.preview import Preview
from sqlmig.planning.sink_steps import ContinueSink, CutOverSink, DetachSink, StartSink
from sqlmig.planning.steps import (
    Action,
    AlterTable,
    Attach,
    Bootstrap,
    Checkpoint,
    ContinueSource,
    CreateTable,
    Detach,
    DetachSource,
    EmptyTable,
    Execute,
    Plan,
    RenameTable,
    Restore,
    RestoreTable,
    Resume,
    RunFunction,
    StartSource,
    Step,
    Stop,
    Volume,
    assert_never,
)
from sqlmig.planning.stream_steps import AdvanceStream, BackfillStream, EvolveStream, RestoreStream
from sqlmig.planning.table_steps import ConvertTable, FillColumns, LayOut, RebuildTable
from sqlmig.planning.volume import size
from sqlmig.planning.wrapping import wrapped
from sqlmig.program.diff import ProgramDiff
from sqlmig.wording import counted

_ACTION_WIDTH = 40
"""The longest action that has its reason beside it; below a longer one it begins a new line."""
_KEEP = "\u00a0"
"""A space at which no line ends."""
_SENDS = {
    "difference": "with the difference",
    "snapshot": "with a snapshot",
    "continue": "without sending",
}
_SIGNS = {"added": "+", "removed": "-", "modified": "~", "affected": "~"}


def describe_action(action: Action) -> str:  # noqa: RET503
    """A step in a few words, the same everywhere."""
    match action:
        case Stop():
            return "stop"
        case Checkpoint():
            return "checkpoint"
        case RenameTable(before, after):
            return f"rename table `{before}` to `{after}`"
        case CreateTable(relation):
            return f"create table `{relation}`"
        case AlterTable(relation, operations):
            return f"alter table `{relation}`" + (
                f": {', '.join(operations)}" if operations else ""
            )
        case ConvertTable(relation, operations, _, is_rewritten):
            verb = "rewrite" if is_rewritten else "alter"
            return f"{verb} table `{relation}`: {', '.join(operations)}"
        case LayOut(relation, columns):
            how = f"partitioned by ({', '.join(columns)})" if columns else "not partitioned"
            return f"rewrite `{relation}`: {how}"
        case FillColumns(relation, columns):
            listed = ", ".join(f"`{column}`" for column in columns)
            return f"fill {listed} of `{relation}` from raw records"
        case RebuildTable(relation):
            return f"rebuild table `{relation}` from raw records"
        case EmptyTable(relation):
            return f"empty table `{relation}`"
        case Attach(relation):
            return f"attach `{relation}`"
        case (
            RestoreTable(relation, _, version)
            | Restore(relation, _, version)
            | RestoreStream(relation, _, version)
        ):
            return f"restore `{relation}` to version {version}"
        case Execute(_, _, _, sql):
            line = " ".join(sql.split())
            return f"execute: {line if len(line) <= 72 else line[:69] + '...'}"
        case RunFunction(_, _, _, name):
            return f"run {name}()"
        case StartSource(connector, _, generation):
            return f"start source `{connector}`" + (" again" if generation > 1 else "")
        case ContinueSource(connector):
            return f"continue source `{connector}`"
        case DetachSource(connector):
            return f"detach source `{connector}`"
        case StartSink(connector, _, generation):
            again = " again" if generation > 1 else ""
            return f"start sink `{connector}`{again} with a snapshot"
        case ContinueSink(connector):
            return f"continue sink `{connector}`"
        case CutOverSink(connector, sends=sends):
            return f"cut over sink `{connector}` {_SENDS[sends]}"
        case DetachSink(connector):
            return f"detach sink `{connector}`"
        case Bootstrap(relation):
            return f"bootstrap `{relation}`"
        case AdvanceStream(relation, until):
            limit = f" until {in_words(datetime.fromisoformat(until))}" if until else ""
            return f"take in rows for `{relation}`{limit}"
        case EvolveStream(relation):
            return f"continue `{relation}` in place"
        case BackfillStream(relation, _, since):
            return f"backfill `{relation}` since {since}"
        case Detach(relation):
            return f"detach `{relation}`"
        case Resume():
            return "resume"
        case _:
            assert_never(action)


def describe_diff(diff: ProgramDiff) -> tuple[str, ...]:
    """The program diff in lines: a sign, what it is, its name, why."""
    lines = []
    for change in diff.changes:
        reasons = f": {'; '.join(change.reasons)}" if change.reasons else ""
        lines.append(f"{_SIGNS[change.how]} {change.title} {change.name}{reasons}")
    return tuple(lines)


def to_text(plan: Plan, *, verbose: bool = False, preview: Preview | None = None) -> str:
    """The plan for a terminal; with `verbose`, also what is said of each relation that changes."""
    lines = [
        f"{plan.direction} {plan.deployed or 'base'} -> {plan.target or 'base'} (plan {plan.id})"
    ]
    if plan.is_noop:
        return "\n".join([lines[0], "", "nothing to do"]) + "\n"
    lines += ["", "changes:"]
    changes = describe_diff(plan.diff) or ("none in the program",)
    lines += [part for line in changes for part in wrapped(line, "  ", "      ")]
    if verbose and plan.relations:
        lines += ["", "relations:", *relation_lines(plan.relations)]
    lines += ["", "steps:", *_step_lines(plan.steps)]
    if plan.destructive:
        lines += [
            "",
            "destructive (needs --allow-destructive), lost for good after a change of the rows:",
        ]
        lines += [f"  {step.number:>3}  {step.destructive}" for step in plan.destructive]
    if plan.warnings:
        lines += ["", "warnings:", *(f"  {warning}" for warning in plan.warnings)]
    if plan.blockers:
        lines += ["", "blocked:"]
        for blocker in plan.blockers:
            where = f"{blocker.location}: " if blocker.location else ""
            lines.append(f"  {where}{blocker.message}")
            if blocker.hint:
                lines.append(f"    hint: {blocker.hint}")
    if preview is not None:
        lines += ["", *preview_lines(preview)]
    total = _total(plan.steps)
    lines += ["", f"reads {total}; no input is read between stop and resume"]
    return "\n".join(lines) + "\n"


def _step_lines(steps: Sequence[Step]) -> Iterator[str]:
    """Number and action to the left, why and what is read to the right; 79 characters wide."""
    actions = [describe_action(step.action) for step in steps]
    width = max((len(action) for action in actions if len(action) <= _ACTION_WIDTH), default=0)
    for step, action in zip(steps, actions, strict=True):
        margin = " " * (7 + width + 2)
        parts = [part for part in (step.cause, step.cost.replace(" ", _KEEP)) if part]
        reads = [_volume(v).replace(" ", _KEEP) for v in step.reads if v.rows is not None]
        if reads:
            parts.append(f"reads{_KEEP}" + ", ".join(reads))
        tail = [
            line.replace(_KEEP, " ") for part in parts for line in wrapped(part, margin, margin)
        ]
        head = f"  {step.number:>3}  {action}"
        if tail and len(head) <= len(margin) - 2:
            yield head.ljust(len(margin)) + tail.pop(0).lstrip()
        else:
            yield head
        yield from tail


def to_markdown(plan: Plan, *, verbose: bool = False, preview: Preview | None = None) -> str:
    """The plan for a pull request or a job summary; arguments as for `to_text`."""
    title = f"`{plan.deployed or 'base'}` → `{plan.target or 'base'}`"
    lines = [
        f"### sqlmig {plan.direction} {title}",
        "",
        f"Plan `{plan.id}` of pipeline `{plan.pipeline}`.",
        "",
    ]
    if plan.is_noop:
        return "\n".join([*lines, "Nothing to do.", ""])
    if plan.blockers:
        lines += ["**Blocked:**", ""]
        for blocker in plan.blockers:
            where = f"`{blocker.location}`: " if blocker.location else ""
            hint = f" ({blocker.hint})" if blocker.hint else ""
            lines.append(f"- {where}{blocker.message}{hint}")
        lines.append("")
    lines += ["| change | what | name | why |", "|---|---|---|---|"]
    for change in plan.diff.changes:
        why = "; ".join(change.reasons).replace("|", "\\|")
        lines.append(f"| {change.how} | {change.title} | `{change.name}` | {why} |")
    if verbose and plan.relations:
        lines += ["", *relation_table(plan.relations)]
    lines += ["", "| step | what | why | reads | writes |", "|---|---|---|---|---|"]
    for step in plan.steps:
        reads = ", ".join(_volume(v) for v in step.reads)
        writes = step.cost or (_volume(step.writes) if step.writes else "")
        what = describe_action(step.action).replace("|", "\\|")
        why = step.cause.replace("|", "\\|")
        lines.append(f"| {step.number} | {what} | {why} | {reads} | {writes} |")
    if plan.destructive:
        lines += ["", "**Destructive:**", ""]
        lines += [f"- step {step.number}: {step.destructive}" for step in plan.destructive]
    if plan.warnings:
        lines += ["", "**Warnings:**", "", *(f"- {warning}" for warning in plan.warnings)]
    if preview is not None:
        lines += ["", *preview_markdown(preview)]
    lines += ["", f"Reads {_total(plan.steps)}; no input is read between stop and resume.", ""]
    return "\n".join(lines)


def _volume(volume: Volume) -> str:
    if volume.rows is None:
        return f"{volume.relation}"
    rows = counted(volume.rows, "row")
    if volume.bytes is None:
        return f"{volume.relation} ({rows})"
    return f"{volume.relation} ({rows}, {size(volume.bytes)})"


def _total(steps: Iterable[Step]) -> str:
    volumes = [v for step in steps for v in step.reads]
    if not volumes:
        return "0 rows"
    rows = sum(v.rows or 0 for v in volumes)
    unknown = any(v.rows is None for v in volumes)
    text = f"{rows:,} rows ({size(sum(v.bytes or 0 for v in volumes))}) in Delta"
    return text + (", and relations that this plan makes" if unknown else "")
