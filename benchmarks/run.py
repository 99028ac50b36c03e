"""Runs the benchmarks and prints what they saw. See docs/benchmarks.md.

python benchmarks/run.py                    # all
python benchmarks/run.py start_up --quick   # one, with smaller sizes
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from measuring import table

BENCHMARKS = ("start_up", "large_projects", "going_back", "upgrading", "running")


def main() -> int:
    """Run them; 1 when a goal is missed, else 0. With --quick goals are only shown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark `{unknown[0]}`; there are {', '.join(BENCHMARKS)}")
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    )
    missed = False
    for name in chosen.names or BENCHMARKS:
        module = importlib.import_module(name)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"sqlmig-{name}-") as folder:
            figures = module.measure(Path(folder), quick=chosen.quick)
        print(
            f"\n## {module.TITLE} ({time.monotonic() - began:.0f} s)\n\n{table(figures)}",
            flush=True,
        )
        missed = missed or not all(figure.is_met for figure in figures)
    return 1 if missed and not chosen.quick else 0


if __name__ == "__main__":
    sys.exit(main())
