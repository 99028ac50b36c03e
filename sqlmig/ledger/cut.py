"""A cut: the Delta version and contents of every relation, and how far each connector is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmig.ledger.sink_state import PinnedContents, SinkState

Json = Mapping[str, Any]


@dataclass(frozen=True)
class RelationState:
    """A stored relation at a cut.

    Args:
        folder: name of its folder below the warehouse's `tables`.
        kind: the words of its CREATE statement.
        version: its Delta version.
        content: `folder@version` of the commit that first held these contents; a restore keeps it,
            so that equal ids mean equal contents.
        fingerprint: the table's or the materialization's fingerprint.
        inputs: for a materialized view: input -> content id that it was computed from; for what
            takes rows in: stream or input -> content id whose rows have all passed.
        rows, bytes: as Delta's statistics have them.
        altered_from: for a table or streaming table: the state that a change made this one of.
        is_emptied: that change emptied the table.
        taken_back: for those: the later state that was put back to this one.
        passed: for what takes rows in: folder of a stream or input -> the Delta versions whose rows
            have passed (`0-5,7`).
        is_historical: it holds what rows gave under an earlier query.
        layout: the columns that it is partitioned by, in lower case.
        watermark: for a streaming table with windows: how far its time is, in microseconds since
            1970 (UTC); None before the first row. Windows that end by then have been emitted.
        late: rows that passed when their window had been emitted; they are in none.
    """

    folder: str
    kind: str
    version: int
    content: str
    fingerprint: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    bytes: int | None = None
    altered_from: RelationState | None = None
    is_emptied: bool = False
    taken_back: RelationState | None = None
    passed: Mapping[str, str] = field(default_factory=dict)
    is_historical: bool = False
    layout: tuple[str, ...] = ()
    watermark: int | None = None
    late: int = 0

    @property
    def takes_in(self) -> bool:
        """Whether rows pass it once, when they come, so that it has a position: a streaming table,
        or a materialized view that went on in place."""
        return self.kind == "streaming table" or bool(self.passed)

    @property
    def contents(self) -> PinnedContents:
        """What it holds, pinned to its version."""
        return PinnedContents(self.folder, self.version, self.content)

    @property
    def place(self) -> str:
        """`folder@version`: where its rows can be read."""
        return f"{self.folder}@{self.version}"

    def with_rows(self, version: int, rows: int | None, size: int | None) -> RelationState:
        """This table after its rows moved on to `version`.

        To put back what was altered would now lose rows, so that is forgotten. What was emptied
        can still be put back: that the rows since then are lost is said in the plan.
        """
        if version == self.version:
            return self
        emptied: RelationState | None = self
        while emptied is not None and not emptied.is_emptied:
            emptied = emptied.altered_from
        before = emptied.altered_from if emptied is not None else None
        return replace(
            self,
            version=version,
            content=f"{self.folder}@{version}",
            rows=rows,
            bytes=size,
            altered_from=before,
            is_emptied=before is not None,
            taken_back=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON; empty fields are left out."""
        data: dict[str, Any] = {
            "folder": self.folder,
            "kind": self.kind,
            "version": self.version,
            "content": self.content,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "bytes": self.bytes,
        }
        if self.inputs:
            data["inputs"] = dict(sorted(self.inputs.items()))
        if self.altered_from is not None:
            data["altered_from"] = self.altered_from.to_dict()
        if self.is_emptied:
            data["is_emptied"] = True
        if self.taken_back is not None:
            data["taken_back"] = self.taken_back.to_dict()
        if self.passed:
            data["passed"] = dict(sorted(self.passed.items()))
        if self.is_historical:
            data["is_historical"] = True
        if self.layout:
            data["layout"] = list(self.layout)
        if self.watermark is not None:
            data["watermark"] = self.watermark
        if self.late:
            data["late"] = self.late
        return data

    @staticmethod
    def from_dict(data: Json) -> RelationState:
        """The inverse of `to_dict`."""
        origin, later = data.get("altered_from"), data.get("taken_back")
        return RelationState(
            folder=data["folder"],
            kind=data["kind"],
            version=data["version"],
            content=data["content"],
            fingerprint=data["fingerprint"],
            inputs=data.get("inputs", {}),
            rows=data.get("rows"),
            bytes=data.get("bytes"),
            altered_from=RelationState.from_dict(origin) if origin else None,
            is_emptied=data.get("is_emptied", False),
            taken_back=RelationState.from_dict(later) if later else None,
            passed=data.get("passed", {}),
            is_historical=data.get("is_historical", False),
            layout=tuple(data.get("layout", ())),
            watermark=data.get("watermark"),
            late=data.get("late", 0),
        )


@dataclass(frozen=True)
class ConnectorState:
    """A connector at a cut: which generation of its checkpoint is in use.

    Args:
        folder: its folder below the warehouse's `checkpoints`.
        generation: counts resets, from 1.
        fingerprint: of the connector's definition, without secrets.
        rows, rejected: read so far by this generation; bad records kept aside.
        behind: records that the last round that read any left for the next; None where unknown.
        batch: number of the last batch that `rows` has in it; None where that is unknown.
    """

    folder: str
    generation: int
    fingerprint: str
    rows: int = 0
    rejected: int = 0
    behind: int | None = None
    batch: int | None = None

    @property
    def offsets(self) -> str:
        """`folder/generation`: where its offsets lie."""
        return f"{self.folder}/{self.generation}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON; what is unknown is left out."""
        data: dict[str, Any] = {
            "folder": self.folder,
            "generation": self.generation,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "rejected": self.rejected,
        }
        if self.behind is not None:
            data["behind"] = self.behind
        if self.batch is not None:
            data["batch"] = self.batch
        return data

    @staticmethod
    def from_dict(data: Json) -> ConnectorState:
        """The inverse of `to_dict`."""
        return ConnectorState(**data)


@dataclass(frozen=True)
class Cut:
    """A consistent point: the state of every stored relation and connector.

    `detached` holds what no revision uses any more and a downgrade may need again.
    In a step's record a cut is partial: it holds what the step changed; None stands for removed.
    """

    relations: Mapping[str, RelationState] = field(default_factory=dict)
    connectors: Mapping[str, ConnectorState] = field(default_factory=dict)
    detached: Mapping[str, RelationState] = field(default_factory=dict)
    detached_connectors: Mapping[str, ConnectorState] = field(default_factory=dict)
    sinks: Mapping[str, SinkState] = field(default_factory=dict)
    detached_sinks: Mapping[str, SinkState] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON, sorted by name; empty parts are left out."""
        parts: dict[str, Mapping[str, RelationState | ConnectorState | SinkState]] = {
            "relations": self.relations,
            "connectors": self.connectors,
            "detached": self.detached,
            "detached_connectors": self.detached_connectors,
            "sinks": self.sinks,
            "detached_sinks": self.detached_sinks,
        }
        return {
            key: {name: part[name].to_dict() for name in sorted(part)}
            for key, part in parts.items()
            if part
        }

    @staticmethod
    def from_dict(data: Json) -> Cut:
        """The inverse of `to_dict`."""
        return Cut(
            relations={n: RelationState.from_dict(s) for n, s in data.get("relations", {}).items()},
            connectors={
                n: ConnectorState.from_dict(s) for n, s in data.get("connectors", {}).items()
            },
            detached={n: RelationState.from_dict(s) for n, s in data.get("detached", {}).items()},
            detached_connectors={
                n: ConnectorState.from_dict(s)
                for n, s in data.get("detached_connectors", {}).items()
            },
            sinks={n: SinkState.from_dict(s) for n, s in data.get("sinks", {}).items()},
            detached_sinks={
                n: SinkState.from_dict(s) for n, s in data.get("detached_sinks", {}).items()
            },
        )

    def with_relation(self, name: str, state: RelationState) -> Cut:
        """This cut with one relation's state set; what it had in another folder is detached."""
        detached = {f: s for f, s in self.detached.items() if f != state.folder}
        was = self.relations.get(name)
        if was is not None and was.folder != state.folder:
            detached[was.folder] = was
        return replace(self, relations={**self.relations, name: state}, detached=detached)

    def without_relation(self, name: str) -> Cut:
        """This cut with one relation detached."""
        if name not in self.relations:
            return self
        state = self.relations[name]
        rest = {n: s for n, s in self.relations.items() if n != name}
        return replace(self, relations=rest, detached={**self.detached, state.folder: state})

    def with_connector(self, name: str, state: ConnectorState) -> Cut:
        """This cut with one connector's state set; what it had before is detached."""
        was = self.connectors.get(name)
        return replace(self, connectors={**self.connectors, name: state})._detached(was, state)

    def without_connector(self, name: str) -> Cut:
        """This cut with one connector detached."""
        if name not in self.connectors:
            return self
        rest = {n: s for n, s in self.connectors.items() if n != name}
        return replace(self, connectors=rest)._detached(self.connectors[name])

    def with_sink(self, name: str, state: SinkState) -> Cut:
        """This cut with one sink's state set; what it had before is detached."""
        was = self.sinks.get(name)
        return replace(self, sinks={**self.sinks, name: state})._detached_sinks(was, state)

    def without_sink(self, name: str) -> Cut:
        """This cut with one sink detached."""
        if name not in self.sinks:
            return self
        rest = {n: s for n, s in self.sinks.items() if n != name}
        return replace(self, sinks=rest)._detached_sinks(self.sinks[name])

    def _detached_sinks(self, *states: SinkState | None) -> Cut:
        """This cut with `states` among the detached sinks, unless a sink uses them."""
        used = {state.offsets for state in self.sinks.values()}
        detached = {**self.detached_sinks, **{s.offsets: s for s in states if s is not None}}
        return replace(self, detached_sinks={k: s for k, s in detached.items() if k not in used})

    def _detached(self, *states: ConnectorState | None) -> Cut:
        """This cut with `states` among the detached connectors, unless a connector uses them."""
        used = {state.offsets for state in self.connectors.values()}
        detached = {**self.detached_connectors, **{s.offsets: s for s in states if s is not None}}
        return replace(
            self, detached_connectors={k: s for k, s in detached.items() if k not in used}
        )
