"""Walks whose processes die anywhere: how one dies, and what the next one does first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from hypothesis import strategies as st

from tests.fakes import Died, Pipeline, Revision, World


def whole(world: World, revisions: Sequence[Revision], data: st.DataObject) -> Pipeline:
    """A process that finds everything ended: a plan that died is finished or taken back."""
    world.revive()
    pipeline = Pipeline(world, revisions)
    if pipeline.deployment.unfinished is not None:
        if data.draw(st.booleans()):
            pipeline.executor.resume()
        else:
            pipeline.executor.roll_back()
    return pipeline


@contextmanager
def maybe_dying(world: World, data: st.DataObject, beats: int = 40) -> Iterator[None]:
    """A block in which the process dies at one of the first `beats` beats from now on, or lives."""
    world.revive(data.draw(st.one_of(st.none(), st.integers(0, beats))))
    with suppress(Died):
        yield
