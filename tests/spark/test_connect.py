"""What is sent to a Spark Connect server, and what is shown of its address; no server is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark.cloudpickle import dumps, register_pickle_by_value, unregister_pickle_by_value

import sqlmig
from sqlmig.program.parse import parse_program
from sqlmig.spark.batches import BatchWriter

PROGRAM = """\
CREATE TABLE grades (id BIGINT NOT NULL, name VARCHAR(9) DEFAULT 'x' COMMENT 'c', PRIMARY KEY (id));
"""


def test_what_a_stream_does_is_whole_where_sqlmig_is_not_installed(tmp_path: Path) -> None:
    # given
    table = parse_program({"a.sql": PROGRAM}).tables["grades"]
    writer = BatchWriter(
        table=table,
        table_path="/lake/tables/grades",
        rejected_path="/lake/rejected/grades.s",
        application="sqlmig/source/grades.s/1",
        connector="grades.s",
        generation=1,
        mark="{}",
    )
    register_pickle_by_value(sqlmig)  # type: ignore[no-untyped-call]
    try:
        (tmp_path / "writer").write_bytes(dumps(writer))  # type: ignore[no-untyped-call]
    finally:
        unregister_pickle_by_value(sqlmig)  # type: ignore[no-untyped-call]

    # when: it is read where there is no such package
    code = (
        "import sys, pickle; sys.modules['sqlmig'] = None\n"
        "writer = pickle.load(open('writer', 'rb'))\n"
        "print(type(writer).__name__, writer.table.primary_key, writer.table.columns[1].default)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )

    # then
    assert done.stdout.strip() == "BatchWriter ('id',) 'x'", done.stderr


def test_a_client_that_is_not_whole_says_what_to_install(tmp_path: Path) -> None:
    # in a process of its own: pyspark remembers that Spark Connect was asked for
    code = (
        "import sys; sys.modules['grpc'] = None\n"
        "from sqlmig.errors import EngineError\n"
        "from sqlmig.spark.session import open_session\n"
        "try:\n"
        "    open_session({'remote': 'sc://127.0.0.1:1/;token=t0p-s3cret'})\n"
        "except EngineError as error:\n"
        "    print(error.render())"
    )

    (tmp_path / "script.py").write_text(code, encoding="utf-8")

    done, short = (
        subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
        for words in ([str(tmp_path / "script.py")], ["-c", code])
    )

    assert done.stdout.startswith("error: Spark Connect needs more than is installed: ")
    assert "hint: pip install 'sqlmig[connect]'" in done.stdout
    assert "t0p-s3cret" not in done.stdout
    assert short.stdout.startswith("error: pyspark takes `python -c` for a test of its own")
    assert "hint: put the code into a file" in short.stdout
