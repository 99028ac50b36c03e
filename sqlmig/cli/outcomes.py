"""What the commands that deploy tell: a plan, what was done, a plan that died under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sqlmig.cli.output import print_json, say, to_json

if TYPE_CHECKING:
    from sqlmig.commands.deploy import Deployed
    from sqlmig.execution.tick import TickResult
    from sqlmig.ledger.deployment import PlanInProgress
    from sqlmig.planning.preview import Preview
    from sqlmig.planning.steps import Plan

_WAITS = 3


def told_plan(plan: Plan, style: str, *, verbose: bool, preview: Preview | None) -> str:
    """A plan as text, JSON or Markdown."""
    from sqlmig.planning import explain

    if style == "json":
        data = plan.to_dict()
        # the frozen texts are in the revision files; a reader of the plan wants the plan
        data.pop("stages")
        data["ups"] = [{k: v for k, v in up.items() if k != "text"} for up in data["ups"]]
        if preview is not None:
            data["preview"] = preview.to_dict()
        return to_json(data) + "\n"
    tell = explain.to_markdown if style == "markdown" else explain.to_text
    return tell(plan, verbose=verbose, preview=preview)


def report(result: Deployed, *, as_json: bool) -> None:
    """Print what was done, and exit with 3 if a plan waits, with 1 if the tick after it failed."""
    context = click.get_current_context()
    plan = result.plan
    if as_json:
        print_json(_deployed_json(result))
    if result.resumed:
        say(f"Plan {result.resumed}, which had died under way, was finished first.")
    if result.taken_back:
        say(f"Plan {result.taken_back}, which had died under way, was taken back.")
    if result.status == "nothing_to_do":
        say(f"Nothing to do: {plan.target or 'base'} is deployed.")
        return
    if result.status == "awaiting_approval":
        from sqlmig.planning.explain import to_text

        say(to_text(plan))
        say(f"AwaitingApproval: plan {plan.id} is recorded, and nothing was run.")
        carry, turn = f"`sqlmig approve {plan.id}`", f"`sqlmig reject {plan.id}`"
        say(f"\nhint: {carry} carries it out, {turn} turns it down")
        context.exit(_WAITS)
    failures = result.tick.failures if result.tick else {}
    say(f"{plan.target or 'base'} is deployed.")
    if failures:
        names = ", ".join(f"`{name}`" for name in sorted(failures))
        say(
            f"\nerror: the tick after it failed for {names}\n\n"
            "hint: mend the cause; `sqlmig run --once` ticks again"
        )
        context.exit(1)


def _deployed_json(result: Deployed) -> dict[str, Any]:
    tick = result.tick
    return {
        "status": result.status,
        "plan": result.plan.id,
        "direction": result.plan.direction,
        "deployed": result.plan.deployed,
        "target": result.plan.target,
        "diff": result.plan.diff.to_json(),
        "resumed": result.resumed,
        "taken_back": result.taken_back,
        "tick": None if tick is None else tick_json(tick),
    }


def tick_json(tick: TickResult) -> dict[str, Any]:
    """A tick as JSON."""
    return {
        "ingested": {
            name: {"rows": rows, "rejected": rejected}
            for name, (rows, rejected) in sorted(tick.ingested.items())
        },
        "refreshed": dict(sorted(tick.refreshed.items())),
        "sent": dict(sorted(tick.sent.items())),
        "late": dict(sorted(tick.late.items())),
        "failures": dict(sorted(tick.failures.items())),
    }


def unfinished_json(plan: PlanInProgress | None) -> dict[str, Any] | None:
    """A plan that died under way as JSON, each step with how far it got; None for none."""
    if plan is None:
        return None
    return {
        "plan": plan.id,
        "target": plan.target,
        "begun": plan.at.isoformat(timespec="seconds"),
        "diff": plan.program_diff,
        "steps": [
            {
                **step,
                "status": plan.steps[step["number"]].status.value
                if step["number"] in plan.steps
                else None,
            }
            for step in plan.plan["steps"]
        ],
    }


def print_unfinished(plan: PlanInProgress) -> None:
    """Print a plan that died under way, step by step, and what to type."""
    from sqlmig.planning.explain import describe_action
    from sqlmig.planning.steps import action_from_dict

    click.echo(f"plan {plan.id}, to {plan.target or 'base'}, begun {plan.at:%F %T} UTC")
    for step in plan.plan["steps"]:
        progress_of = plan.steps.get(step["number"])
        word = progress_of.status.value if progress_of else ""
        click.echo(f"  {word:<8}{step['number']:>3}  {describe_action(action_from_dict(step))}")
    say("\nhint: `sqlmig repair --resume` goes on, `sqlmig repair --rollback` takes it back")
