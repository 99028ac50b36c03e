"""Start-up: reading commands of sqlmig against those of alembic, each a whole process."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from datetime import timedelta
from pathlib import Path

from measuring import Figure, command, in_turns
from projects import FIRST_DAY, commit_all, make_project, write_revisions

from sqlmig import commands

TITLE = "Start-up, as whole processes"
PIPELINE = """\
CREATE TABLE grades (student_id BIGINT, class STRING, grade DECIMAL(5, 2), class_date DATE);
CREATE VIEW passed AS SELECT * FROM grades WHERE grade >= 60;
CREATE MATERIALIZED VIEW avg_grade AS
SELECT student_id, class, AVG(grade) AS class_avg FROM passed GROUP BY student_id, class;
"""
ALEMBIC_REVISION = '''"""change number {number}

Revision ID: {revision}
Revises: {parent}
Create Date: {created}
"""
from alembic import op
import sqlalchemy as sa

revision = "{revision}"
down_revision = {down}
branch_labels = None
depends_on = None


def upgrade():
    op.add_column("grades", sa.Column("note_{number}", sa.String()))


def downgrade():
    op.drop_column("grades", "note_{number}")
'''


def measure(folder: Path, *, quick: bool) -> list[Figure]:
    """Both tools list the same number of revisions, of which the last but one is deployed."""
    count = 20 if quick else 50
    ours, theirs = _sqlmig_project(folder / "sqlmig", count), _alembic(folder / "alembic", count)
    times = in_turns(
        {
            "alembic history": command("alembic", "history", folder=theirs),
            "alembic current": command("alembic", "current", folder=theirs),
            "sqlmig history": command("sqlmig", "history", folder=ours),
            "sqlmig heads": command("sqlmig", "heads", folder=ours),
            "sqlmig current": command("sqlmig", "current", folder=ours),
            "sqlmig plan --offline": command("sqlmig", "plan", "--offline", folder=ours),
        },
        5 if quick else 15,
    )
    pairs = [
        ("sqlmig history", "alembic history"),
        ("sqlmig heads", "alembic history"),
        ("sqlmig current", "alembic current"),
        ("sqlmig plan --offline", "alembic current"),
    ]
    return [Figure(one, times[one], other, times[other], 1.0) for one, other in pairs]


def _sqlmig_project(root: Path, count: int) -> Path:
    files = {"pipeline/school.sql": PIPELINE}
    project = make_project(root, {"school.sql": PIPELINE})
    ids = write_revisions(project, count - 1, files)
    commands.stamp(commands.open_project(root), ids[-1])
    (root / "pipeline" / "school.sql").write_text(PIPELINE.replace("60", "50"), encoding="utf-8")
    commands.revision(commands.open_project(root), "a lower mark passes")
    commit_all(root)
    return root


def _alembic(root: Path, count: int) -> Path:
    from alembic import command as alembic
    from alembic.config import Config

    root.mkdir()
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        config = Config(str(root / "alembic.ini"), stdout=nowhere)
        alembic.init(config, str(root / "migrations"))
        text = (root / "alembic.ini").read_text(encoding="utf-8")
        url = "sqlalchemy.url = driver://user:pass@localhost/dbname"
        text = text.replace(url, f"sqlalchemy.url = sqlite:///{root}/school.db")
        (root / "alembic.ini").write_text(text, encoding="utf-8")
        ids = [f"{number:012x}" for number in range(1, count + 1)]
        for number, revision in enumerate(ids):
            parent = ids[number - 1] if number else None
            path = root / "migrations" / "versions" / f"{revision}_change_number_{number + 1}.py"
            path.write_text(
                ALEMBIC_REVISION.format(
                    number=number + 1,
                    revision=revision,
                    parent=parent or "",
                    down=f'"{parent}"' if parent else None,
                    created=FIRST_DAY + timedelta(hours=number),
                ),
                encoding="utf-8",
            )
        alembic.stamp(Config(str(root / "alembic.ini"), stdout=nowhere), ids[-2])
    return root
