"""What the records of `sqlmig gc` and of the runner's vacuum make of the deployment. Pure.

What is to be removed is recorded before it is removed: no plan that is made from then on uses it,
whether the removal came to its end or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlmig.ledger.cut import Cut
from sqlmig.ledger.deployment import Deployment
from sqlmig.ledger.records import Record


def after_collection(now: Deployment, record: Record) -> Deployment:
    """Folders, offsets and versions are gone, or are about to be."""
    details, was = record.details, now.collected

    def noted(known: Mapping[str, datetime], key: str) -> Mapping[str, datetime]:
        return {**known, **dict.fromkeys(details.get(key, ()), record.at)}

    before = details.get("before")
    limits = [at for at in (was.before, datetime.fromisoformat(before) if before else None) if at]
    collected = replace(
        was,
        at=record.at,
        before=max(limits, default=None),
        folders=noted(was.folders, "folders"),
        connectors=noted(was.connectors, "connectors"),
        sinks=noted(was.sinks, "sinks"),
        versions=noted(was.versions, "versions"),
    )

    def without(cut: Cut) -> Cut:
        return replace(
            cut,
            detached={f: s for f, s in cut.detached.items() if f not in collected.folders},
            detached_connectors={
                o: s for o, s in cut.detached_connectors.items() if o not in collected.connectors
            },
            detached_sinks={
                o: s for o, s in cut.detached_sinks.items() if o not in collected.sinks
            },
        )

    return replace(
        now, collected=collected, cut=without(now.cut), consistent=without(now.consistent)
    )
