"""A target's policy for the checkout that is deployed to it: clean, pushed, a branch, signed."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from sqlmig.commands.project import Project
from sqlmig.config import GitPolicy
from sqlmig.errors import RejectedError
from sqlmig.git import GitState
from sqlmig.git.proof import is_on_branch, is_pushed, signature_fault

Fault = tuple[str, str, str]
"""Which requirement, what is the matter, what to do."""


def check_checkout(project: Project) -> None:
    """Refuse a checkout that is not what the target asks for. Nothing has been changed by then.

    Raises:
        RejectedError: says all that is the matter, and what to do about each.
    """
    policy = project.target.git
    asked = _asked(policy)
    if not asked:
        return
    state = project.git_state
    if state is None:
        raise RejectedError(
            f"target `{project.target.name}` has {_listed(asked)}, and the project is in no Git "
            "repository that can be read",
            hint="deploy from a clone; `git status` must work in the project's folder",
        )
    faults = tuple(_faults(policy, state, project.root))
    if faults:
        raise RejectedError(
            f"target `{project.target.name}` refuses this checkout: "
            + "; ".join(f"{what} ({key})" for key, what, _ in faults),
            hint="; ".join(dict.fromkeys(todo for _, _, todo in faults)),
        )


def _faults(policy: GitPolicy, state: GitState, root: Path) -> Iterator[Fault]:
    if state.commit is None:
        yield _asked(policy)[0], "nothing is committed yet", "`git commit`"
        return
    commit = f"commit {state.commit[:12]}"
    if policy.require_clean and state.is_dirty:
        yield (
            "require_clean",
            f"files differ from {commit}, or are new",
            "commit them, or put them aside with `git stash -u`; `git status` lists them",
        )
    wanted = policy.require_branch
    if wanted is not None and state.branch is not None and not fnmatchcase(state.branch, wanted):
        yield "require_branch", f"branch `{state.branch}` is not `{wanted}`", _switch(wanted)
    elif wanted is not None and state.branch is None and not is_on_branch(root, wanted):
        yield "require_branch", f"the detached {commit} is not on `{wanted}`", _switch(wanted)
    if policy.require_pushed and not is_pushed(root):
        yield "require_pushed", f"no branch of a remote has {commit}", "`git push`"
    if policy.require_signed:
        fault = signature_fault(root)
        if fault is not None:
            yield "require_signed", f"{commit} {fault[0]}", fault[1]


def _switch(wanted: str) -> str:
    if any(sign in wanted for sign in "*?["):
        return f"`git switch` to a branch that is called like `{wanted}`"
    return f"`git switch {wanted}`"


def _asked(policy: GitPolicy) -> tuple[str, ...]:
    asked = {
        "require_clean": policy.require_clean,
        "require_branch": policy.require_branch is not None,
        "require_pushed": policy.require_pushed,
        "require_signed": policy.require_signed,
    }
    return tuple(key for key, is_asked in asked.items() if is_asked)


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
