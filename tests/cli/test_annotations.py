"""Errors as GitHub's annotations."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmig.cli.annotations import annotation
from sqlmig.errors import Location
from tests.cli.shell import Shell


def test_an_annotation_names_the_file_as_the_checkout_has_it(tmp_path: Path) -> None:
    root = tmp_path / "pipelines" / "school"

    told = annotation(
        "50% of `a`\nis lost", Location("pipeline/a,b.sql", 3, 8), "mend it", root, tmp_path
    )

    assert told == (
        "::error file=pipelines/school/pipeline/a%2Cb.sql,line=3,col=8,title=sqlmig"
        "::50%25 of `a`%0Ais lost%0A%0Ahint: mend it"
    )
    assert annotation("no", None, None, root, tmp_path) == "::error title=sqlmig::no"


def test_github_is_told_of_every_mistake_and_nobody_else_is(
    school: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.write(
        "pipeline/more.sql",
        "CREATE VIEW a AS SELECT * FROM x;\nCREATE VIEW b AS SELECT * FROM y;\n",
    )
    assert "::error" not in school("check", code=1).err

    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(school.folder.parent))
    said = school("check", code=1)

    told = [line for line in said.err.splitlines() if line.startswith("::")]
    assert [line.partition("::")[2].partition("::")[0] for line in told] == [
        "error file=school/pipeline/more.sql,line=1,col=32,title=sqlmig",
        "error file=school/pipeline/more.sql,line=2,col=32,title=sqlmig",
    ]


def test_a_blocked_plan_is_annotated_where_it_is_blocked(
    school: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.freeze("aaaa1111")
    school("stamp", "aaaa")
    school.write("pipeline/out.sql", "\nCREATE SINK out FROM grades USING json;\n")
    school.freeze("bbbb2222")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(school.folder))

    said = school("plan", "--offline", code=4)

    assert said.err.startswith("::error file=pipeline/out.sql,line=2,col=1,title=sqlmig::sink ")
    assert "blocked:" in said.out
