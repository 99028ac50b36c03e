"""The example with Kafka as a user runs it; its README has the numbers."""

from __future__ import annotations

import errno
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.stories.school import QUICK_JAVA

EXAMPLE = Path("example_project") / "kafka"
WALK = (sys.executable, "-m", "example_project.kafka.walkthrough")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The example in a folder of its own, with a Spark that is quick with few rows."""
    left_out = shutil.ignore_patterns("warehouse", "__pycache__")
    shutil.copytree(ROOT / "example_project", tmp_path / "example_project", ignore=left_out)
    return tmp_path


@contextmanager
def walking(project: Path) -> Iterator[subprocess.Popen[str]]:
    """The walkthrough in a process of its own, ended with the block, and what it has started."""
    environment = {**QUICK_JAVA, "NO_COLOR": "1", "COLUMNS": "100"}
    pipe, into = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        WALK, cwd=project, stdout=pipe, stderr=into, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_walkthrough_shows_what_its_readme_shows_and_loses_nothing(project: Path) -> None:
    # when
    with walking(project) as process:
        said = process.communicate()[0]
    assert process.returncode == 0, said

    # then: everything that the README shows, in its order
    promised = [b.text for b in blocks((EXAMPLE / "README.md").as_posix()) if b.language == "text"]
    assert len(promised) == 6
    place = 0
    for text in promised:
        assert text in said[place:], f"{text}\nis not in\n{said[place:]}"
        place = said.index(text, place) + len(text)

    # then: the sink's records of those four are the README's, and there are no more
    promised_records = [line for text in promised for line in text.splitlines() if _is_record(line)]
    assert [line for line in said.splitlines() if _is_record(line)] == promised_records
    assert f"{len(promised_records)} records of the four" in said[place:]
    assert len(promised_records) == 9

    # then: the same process ran all three revisions, each record was read once
    runner = [line[4:] for line in said.splitlines() if line.startswith("  | ")]
    revisions = [line.split()[-1] for line in runner if line.startswith("Running revision")]
    assert revisions == ["5b1d7e30c942", "9e64a2f80b17", "5b1d7e30c942"]
    assert [line.split()[:3] for line in runner if "paused" in line] == [
        ["paused", "for", "plan"]
    ] * 2
    assert "Ending after this tick; interrupt again to end at once." in runner
    assert re.match(r"Ended after \d+ ticks\.", runner[-1])
    sent = re.search(r"^the shop's topic has +(\d+) records$", said, re.MULTILINE)
    read = re.search(r"^the pipeline has read +(\d+) records$", said, re.MULTILINE)
    assert sent is not None
    assert read is not None
    assert int(sent[1]) == int(read[1]) > 8
    assert said.endswith("No record was lost, and none was read twice.\n")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ctrl_c_ends_kafka_too(project: Path) -> None:
    # given
    with walking(project) as process:
        assert process.stdout is not None
        listens = None
        while listens is None:
            line = process.stdout.readline()
            assert line, "it ends before Kafka has started"
            listens = re.match(r"Kafka 4\.1\.0 listens on 127\.0\.0\.1:(\d+)\.", line)

        # when
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]

    # then
    assert process.returncode == 1, said
    assert "Traceback" not in said
    assert said.endswith("error: interrupted; the runner and Kafka have ended\n")
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", int(listens[1]))) == errno.ECONNREFUSED


def _is_record(line: str) -> bool:
    return re.match(r"  \d  (\{|\(no value\))", line) is not None


def test_the_example_with_kafka_is_what_its_head_froze(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlmig", "check"],
        cwd=ROOT / EXAMPLE,
        env=QUICK_JAVA,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr.startswith("No changes")
