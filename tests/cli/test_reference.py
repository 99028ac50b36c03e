"""docs/cli.md says what the commands say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sqlmig.cli.app import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_current() -> None:
    spec = importlib.util.spec_from_file_location("generate_cli", DOCS / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)

    text = (DOCS / "cli.md").read_text(encoding="utf-8")

    assert text == generator.reference(), "`make docs` writes it anew"
    for name in COMMANDS:
        assert f"\n### {name}\n\n    sqlmig {name}" in text
