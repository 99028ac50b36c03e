"""What a plan would do to the rows: computed over pinned versions, nothing written.

It knows prospects and programs, and no plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlmig.errors import SqlmigError
from sqlmig.ledger.cut import RelationState
from sqlmig.planning.preview import Difference, Prospect, Way
from sqlmig.program.model import Program, Table, View
from sqlmig.spark.comparison import compare
from sqlmig.spark.conversion import conversions, converted
from sqlmig.spark.delta import read_version
from sqlmig.spark.failures import told
from sqlmig.spark.functions import define
from sqlmig.spark.names import quoted
from sqlmig.spark.relations import run_query
from sqlmig.spark.tables import storage_type
from sqlmig.warehouse import DeltaWarehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Previewer:
    """Makes the relations as a plan would leave them, in one session, and compares.

    Args:
        session: one of its own: the relations are registered in it.
        after: the target's program.
        states: of the deployed relations, at the cut.
        samples: how many rows of each kind are shown.
    """

    def __init__(
        self,
        session: SparkSession,
        warehouse: DeltaWarehouse,
        after: Program,
        states: Mapping[str, RelationState],
        samples: int,
    ) -> None:
        session.conf.set("spark.sql.ansi.enabled", "true")  # as the steps themselves have it
        self._session = session
        self._warehouse = warehouse
        self._after = after
        self._states = states
        self._samples = samples
        self._frames: dict[str, DataFrame] = {}
        self._unknown: dict[str, str] = {}
        self._kept: list[DataFrame] = []

    def preview(
        self, prospects: Sequence[Prospect], keys: Mapping[str, Sequence[str]]
    ) -> tuple[Difference, ...]:
        """What differs, for each of `prospects`.

        Args:
            keys: relation -> the columns that are declared to tell its rows apart, if any are.
        """
        try:
            self._register({p.relation: p for p in prospects})
            return tuple(self._difference(prospect, keys) for prospect in prospects)
        finally:
            for frame in self._kept:
                frame.unpersist()

    def _difference(self, prospect: Prospect, keys: Mapping[str, Sequence[str]]) -> Difference:
        name = prospect.relation
        relation = self._after.relations.get(name)
        kind = relation.kind.value if relation else prospect.before.kind if prospect.before else ""
        if name in self._unknown:
            return Difference(name, kind, unknown=self._unknown[name])
        before = self._read_state(prospect.before) if prospect.before else None
        if before is not None and prospect.renamed:  # a column is compared under its new name
            renamed = {old.lower(): new for old, new in prospect.renamed}
            before = before.toDF(*(renamed.get(c.lower(), c) for c in before.columns))
        with told(f"`{name}`"):
            after, key = self._frames.get(name), keys.get(name, ())
            return compare(name, kind, before, after, key, samples=self._samples)

    def _register(self, prospects: Mapping[str, Prospect]) -> None:
        """Make a temporary view of each relation, as the plan would leave it."""
        defined: set[str] = set()
        for name in self._needed(prospects):
            relation = self._after.relations[name]
            if isinstance(relation, View):
                for function in self._after.called(relation.called):
                    if function not in defined:
                        defined.add(function)
                        define(self._session, self._after.functions[function])
            missing = sorted(self._after.reads(name) & self._unknown.keys())
            prospect = prospects.get(name)
            is_computed = not relation.is_stored or (prospect and prospect.way is Way.QUERY)
            if missing and is_computed:
                self._unknown[name] = f"it reads `{missing[0]}`, which is not previewed"
                continue
            frame = self._frame(name, prospect)
            if frame is None:
                self._unknown[name] = "what its rows are shows when it is deployed"
                continue
            with told(f"`{name}`"):
                if is_computed and relation.is_stored:
                    frame = frame.persist()
                    self._kept.append(frame)
                frame.createOrReplaceTempView(quoted(name))
            self._frames[name] = frame

    def _needed(self, prospects: Mapping[str, Prospect]) -> tuple[str, ...]:
        """The relations of `prospects` and what their queries read, inputs before readers."""
        wanted: set[str] = set()
        pending = [name for name in prospects if name in self._after.relations]
        while pending:
            name = pending.pop()
            if name in wanted:
                continue
            wanted.add(name)
            prospect = prospects.get(name)
            is_read = prospect is not None and prospect.way in (Way.QUERY, Way.ROWS)
            if is_read or not self._after.relations[name].is_stored:
                pending.extend(self._after.reads(name))
        return tuple(name for name in self._after.order if name in wanted)

    def _frame(self, name: str, prospect: Prospect | None) -> DataFrame | None:
        """The relation as the plan would leave it; None where only carrying it out would tell."""
        relation = self._after.relations[name]
        if isinstance(relation, View) and not relation.is_stored:
            return run_query(self._session, relation)
        if prospect is None:
            state = self._states.get(name)
            if state is not None:
                return self._read_state(state)
            return self._empty(relation) if isinstance(relation, Table) else None
        match prospect.way:
            case Way.VERSION if prospect.version is not None:
                return self._read(*prospect.version)
            case Way.QUERY if isinstance(relation, View):
                return run_query(self._session, relation)
            case Way.NONE if isinstance(relation, Table):
                return self._empty(relation)
            case Way.ROWS if prospect.before is not None:
                return self._rows(relation, prospect, prospect.before)
            case _:
                return None

    def _rows(
        self, relation: Table | View, prospect: Prospect, before: RelationState
    ) -> DataFrame | None:
        """The rows of before, under the columns of the new definition."""
        from pyspark.sql import functions as F  # noqa: N812

        rows = self._read_state(before)
        if isinstance(relation, Table):
            stored = self._warehouse.describe(before.folder)
            found = conversions(stored, relation, prospect.renamed)
            return rows.select(*(converted(rows, conversion) for conversion in found))
        try:
            fields = run_query(self._session, relation).schema.fields
        except SqlmigError:
            return None
        known = {column.lower(): column for column in rows.columns}
        return rows.select(
            *(
                (F.col(quoted(known[f.name.lower()])) if f.name.lower() in known else F.lit(None))
                .cast(f.dataType)
                .alias(f.name)
                for f in fields
            )
        )

    def _empty(self, table: Table) -> DataFrame:
        columns = ", ".join(
            f"CAST(NULL AS {storage_type(c.type)}) AS {quoted(c.name)}" for c in table.columns
        )
        return self._session.sql(f"SELECT {columns} WHERE false")

    def _read_state(self, state: RelationState) -> DataFrame:
        return self._read(state.folder, state.version)

    def _read(self, folder: str, version: int) -> DataFrame:
        path = self._warehouse.table_path(folder)
        with told(f"the table in folder `{folder}`"):
            return read_version(self._session, path, version)
