"""The command line. Only this package prints and exits; what it prints comes from `commands`."""

from sqlmig.cli.app import main

__all__ = ["main"]
