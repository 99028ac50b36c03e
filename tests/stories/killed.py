"""A program that a test runs and that kills itself: `killed.py ROOT STEP PHASE [TARGET]`.

It upgrades the project in ROOT to its head, at TARGET or the default one, and sends itself SIGKILL
at step STEP: in `started` when the STARTED record is there, in `effected` when the effect is made
and not yet recorded. With STEP 0 it lives.
"""

from __future__ import annotations

import os
import signal
import sys

from sqlmig import commands
from sqlmig.execution import events


def main() -> None:
    """Upgrade, and die on the way."""
    root, step, phase = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    target = sys.argv[4] if len(sys.argv) > 4 else None

    def observer(event: events.Event) -> None:
        match event:
            case events.StepStarted(now) if phase == "started":
                pass
            case events.StepEffected(now) if phase == "effected":
                pass
            case _:
                return
        if now.number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    commands.upgrade(commands.open_project(root, target), "head", yes=True, observer=observer)


if __name__ == "__main__":
    main()
