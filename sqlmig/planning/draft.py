"""The draft of a plan: the steps so far, and the state that every relation will have after them."""

from __future__ import annotations

from sqlmig.ledger.cut import RelationState
from sqlmig.planning.collected import in_words, removed_at
from sqlmig.planning.request import Request, observe
from sqlmig.planning.steps import Action, Blocker, Step, Volume
from sqlmig.program.diff import Change, What, diff_programs


class Draft:
    """A plan under way.

    Attributes:
        states: stored relation -> its state after the steps so far. observed: before all steps.
        renames: deployed table -> its name after the steps so far, for those that a hook renamed.
        fresh: tables that begin empty, and why. returned: tables that are as they were earlier.
        added: table -> columns that it gets, in lower case.
        rebuilt: tables whose rows are made of raw records.
        recast: table -> columns whose values are others, or mean another key, than a source knew.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.deployment = request.deployment
        self.target = request.target
        self.diff = diff_programs(request.deployed, request.target)
        self.steps: list[Step] = []
        self.blockers: list[Blocker] = []
        self.warnings: list[str] = []
        self.states = {
            name: observe(state, request.observed[state.folder])
            if state.folder in request.observed
            else state
            for name, state in self.deployment.cut.relations.items()
        }
        self.observed = dict(self.states)
        self.renames: dict[str, str] = {}
        self.fresh: dict[str, str] = {}
        self.returned: set[str] = set()
        self.added: dict[str, frozenset[str]] = {}
        self.rebuilt: set[str] = set()
        self.recast: dict[str, frozenset[str]] = {}
        # the ledger still names versions in folders that are gone: their names are not used again
        self._folders = {*self.deployment.folders, *self.deployment.collected.folders}
        self._changes: dict[tuple[str, str], Change] = {
            (c.what, c.name): c for c in self.diff.changes
        }

    def add(
        self,
        action: Action,
        cause: str,
        *,
        reads: tuple[Volume, ...] = (),
        writes: Volume | None = None,
        destructive: str | None = None,
        cost: str = "",
    ) -> None:
        """Add a step."""
        number = len(self.steps) + 1
        self.steps.append(Step(number, action, cause, reads, writes, destructive, cost))

    def change(self, what: What, name: str) -> Change | None:
        """What the program diff says of a relation or connector."""
        return self._changes.get((what, name))

    def cause(self, what: What, name: str) -> str:
        """The same in words; '' where it did not change."""
        change = self.change(what, name)
        if change is None:
            return ""
        return "; ".join(change.reasons) or f"it is {change.how}"

    def new_folder(self, name: str) -> str:
        """A folder that no relation has or had, as far as anything of that is kept."""
        folder, number = name, 1
        while folder in self._folders:
            number += 1
            folder = f"{name}__{number}"
        self._folders.add(folder)
        if folder in self.request.folders - self.deployment.aborted:
            self.blockers.append(
                Blocker(
                    f"folder `{folder}` of the warehouse holds a table unknown to the ledger",
                    hint="if the ledger was lost, `sqlmig stamp REV` takes up the tables that are "
                    "there; else move the folder away",
                )
            )
        return folder

    def kept(self, revision: str | None, name: str) -> RelationState | None:
        """A detached relation that `name` was when `revision` was deployed last, as it is now."""
        earlier = self.deployment.relation_history.get((revision or "base", name))
        if earlier is None or any(s.folder == earlier.folder for s in self.states.values()):
            return None
        state = self.deployment.cut.detached.get(earlier.folder)
        return state if state is not None and state.kind == earlier.kind else None

    def warn_of_removed(self, revision: str | None, name: str, but: str) -> None:
        """Warn if what `name` held when `revision` was deployed last was removed by `sqlmig gc`.

        Args:
            but: what becomes of it instead.
        """
        earlier = self.deployment.relation_history.get((revision or "base", name))
        at = removed_at(self.deployment, earlier)
        if at is not None:
            what = "the rows it had at this revision"
            self.warnings.append(f"`{name}` {but}: {in_words(what, at)}")

    @staticmethod
    def volume(name: str, state: RelationState | None) -> Volume:
        """The size of a relation in a state."""
        return Volume(name, state.rows if state else None, state.bytes if state else None)
