"""Projects for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell, new_project


@pytest.fixture
def school(tmp_path: Path) -> Shell:
    """A project with two tables and two views, and nothing frozen."""
    return new_project(tmp_path / "school")


@pytest.fixture
def branched(school: Shell) -> Shell:
    """Five revisions.

    aaaa1111 - bbbb2222 - cccc3333 (left, effective head) ------
                      \\- dddd4444 - eeee5555 (head, needs cccc3333)
    """
    school.freeze("aaaa1111", message="first")
    school.freeze("bbbb2222", "--empty", message="second one\nwith a body")
    school.freeze("cccc3333", "--empty", "--branch-label", "leftish", message="left")
    school.freeze("dddd4444", "--empty", "--head", "bbbb2222", "--splice", message="right")
    school.freeze(
        "eeee5555", "--empty", "--head", "dddd4444", "--depends-on", "cccc3333", message="dep"
    )
    return school
