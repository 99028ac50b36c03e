"""A program that a test runs and that kills itself: `killed_tick.py ROOT SINK`.

It ticks the project in ROOT and sends itself SIGKILL when SINK was sent its batch and that is not
yet recorded.
"""

from __future__ import annotations

import os
import signal
import sys

from sqlmig import commands
from sqlmig.execution import events


def main() -> None:
    """Tick, and die on the way."""
    root, sink = sys.argv[1], sys.argv[2]

    def observer(event: events.Event) -> None:
        if isinstance(event, events.Sending) and event.connector == sink:
            os.kill(os.getpid(), signal.SIGKILL)

    commands.run(commands.open_project(root), observer=observer)


if __name__ == "__main__":
    main()
