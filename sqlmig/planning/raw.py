"""The steps that make rows of raw records which sources have kept. Pure.

Nothing outside is asked: what a source has read once is read again from where it was kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmig.ledger.cut import ConnectorState
from sqlmig.planning.draft import Draft
from sqlmig.planning.request import RawRecords
from sqlmig.planning.source_options import deletion_columns, reads_the_same
from sqlmig.planning.steps import Volume
from sqlmig.planning.table_steps import FillColumns, RebuildTable
from sqlmig.planning.volume import rewriting
from sqlmig.program.model import Source


def plan_fills(draft: Draft) -> None:
    """Fill columns that tables get, and that have no default, in the rows that are there."""
    for name, columns in sorted(draft.added.items()):
        state = draft.states.get(name)
        if name not in draft.target.tables or state is None or state.rows == 0:
            continue
        if name in draft.fresh or name in draft.returned:
            continue
        new = tuple(sorted(c for c in columns if _is_open(draft, name, c)))
        kept = {
            source: (connector, draft.request.raw.get(connector.folder, {}))
            for source, connector in _connectors(draft, name).items()
            if source.retain_raw is not None
        }
        kept = {source: found for source, found in kept.items() if found[1]}
        if not new or not kept:
            continue
        listed = ", ".join(f"`{column}`" for column in new)
        feeding = [source for source in draft.target.sources.values() if source.table == name]
        others = sorted(s.connector for s in feeding if s not in kept)
        for other in others:
            draft.warnings.append(f"{listed} of `{name}` stay NULL in the rows of `{other}`")
        for source, (connector, records) in sorted(kept.items(), key=lambda pair: pair[0].name):
            if not _is_whole(connector, records, from_the_first=True):
                since = min((r.since for r in records.values() if r.since), default="")
                draft.warnings.append(
                    f"{listed} of `{name}` stay NULL in rows that came before {since}: since then "
                    f"`{source.connector}` keeps its raw records"
                )
        draft.add(
            FillColumns(name, new, _as_sources(kept)),
            "from the raw records of "
            + ", ".join(f"`{connector}`" for connector in sorted(s.connector for s in kept)),
            reads=tuple(_volume(s, r) for s, (_, r) in sorted(kept.items(), key=_by_name)),
            writes=draft.volume(name, state),
            cost=rewriting(state.rows, state.bytes),
        )


def plan_rebuild(draft: Draft, name: str) -> bool:
    """Make an emptied table's rows of raw records, if they have all that its sources gave.

    Returns:
        Whether that is so; then the sources go on at their offsets.
    """
    if draft.fresh.get(name) != EMPTIED:
        return False
    connectors = _connectors(draft, name)
    feeding = [source for source in draft.target.sources.values() if source.table == name]
    kept: dict[Source, tuple[ConnectorState, Mapping[int, RawRecords]]] = {}
    for source in feeding:
        connector = connectors.get(source)
        was = draft.request.deployed.sources.get(source.connector)
        if connector is None or was is None or not reads_the_same(was, source):
            return False
        if source.retain_raw is None or deletion_columns(source, draft.target.tables[name]):
            return False
        records = draft.request.raw.get(connector.folder, {})
        if not _is_whole(connector, records):
            if records:
                draft.warnings.append(
                    f"`{source.connector}` is read again from the beginning: its raw records don't "
                    "have all that it gave"
                )
            return False
        kept[source] = connector, {connector.generation: records[connector.generation]}
    if not kept:
        return False
    draft.rebuilt.add(name)
    draft.add(
        RebuildTable(name, _as_sources(kept)),
        "its sources have kept all their raw records, and go on where they are",
        reads=tuple(_volume(s, r) for s, (_, r) in sorted(kept.items(), key=_by_name)),
        writes=Volume(name, None, None),
    )
    return True


EMPTIED = "its table is emptied"
"""Why a table is fresh that was emptied."""

_Kept = Mapping[Source, tuple[ConnectorState, Mapping[int, RawRecords]]]


def _by_name(pair: tuple[Source, object]) -> str:
    return pair[0].name


def _is_open(draft: Draft, name: str, column: str) -> bool:
    """Whether the column is there in the end, and has no default, which would have filled it."""
    columns = {c.name.lower(): c for c in draft.target.tables[name].columns}
    return column in columns and columns[column].default is None


def _connectors(draft: Draft, name: str) -> dict[Source, ConnectorState]:
    """The sources of a table that ran, with their states."""
    before = next((b for b, a in draft.renames.items() if a == name), name)
    states = draft.deployment.cut.connectors
    return {
        source: states[f"{before}.{source.name}"]
        for source in draft.target.sources.values()
        if source.table == name and f"{before}.{source.name}" in states
    }


def _is_whole(
    connector: ConnectorState, records: Mapping[int, RawRecords], *, from_the_first: bool = False
) -> bool:
    """Whether nothing is missing of what the source gave.

    Args:
        from_the_first: since its first generation; else of the one that is in use.
    """
    newest = records.get(connector.generation)
    if newest is None or not newest.is_gapless or newest.first != 0:
        return False
    if connector.batch is None or newest.last < connector.batch:
        return False
    earlier = range(1, connector.generation) if from_the_first else ()
    return all(g in records and records[g].is_gapless and records[g].first == 0 for g in earlier)


def _as_sources(kept: _Kept) -> tuple[tuple[str, str, int], ...]:
    return tuple(sorted((s.connector, c.folder, c.generation) for s, (c, _) in kept.items()))


def _volume(source: Source, records: Mapping[int, RawRecords]) -> Volume:
    rows, size = (sum(getattr(r, n) for r in records.values()) for n in ("records", "bytes"))
    return Volume(f"raw records of {source.connector}", rows, size)
