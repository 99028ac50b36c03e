"""The command line. Only this package prints and exits; what it prints comes from `commands`."""

import gc

from sqlmig.cli.app import main

# A command keeps what it reads to its end: looking for garbage in it time and again took a tenth
# of the time of a plan for 1,000 relations.
gc.set_threshold(100_000, 50, 100)

__all__ = ["main"]
