"""Finding Java: every vendor's words, and one line when it is missing or wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlmig.errors import EngineError
from sqlmig.spark.java import check_java, find_java, parse_version

ROOT = Path(__file__).parents[2]


def fake_java(folder: Path, says: str, status: int = 0) -> Path:
    """A `java` that prints `says` to standard error, as `java -version` does; its home."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {status}\n", encoding="utf-8")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "1.8.0_402"\nJava(TM) SE Runtime Environment', 8),
        ('java version "17.0.9" 2023-10-17 LTS', 17),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "25.0.1" 2025-10-21', 25),
        ("openjdk 17.0.2 2022-01-18\njdk-17.0.2+8", 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="version 8"\nopenjdk version "17.0.1"', 17),
        ("no java to speak of", None),
        ("", None),
    ],
)
def test_the_version_is_read_in_every_vendors_words(says: str, version: int | None) -> None:
    assert parse_version(says) == version


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_17_and_21_will_do(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", f'openjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(home))

    check_java()


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ('openjdk version "11.0.22"', "found 11"),
        ('java version "1.8.0_402"', "found 8"),
        ('openjdk version "24"', "found 24"),
        ("something else", "found one that doesn't tell its version"),
    ],
)
def test_a_wrong_java_is_said_in_one_line_with_what_to_install(
    says: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "jdk", says)
    monkeypatch.setenv("JAVA_HOME", str(home))

    with pytest.raises(EngineError) as caught:
        check_java()

    assert caught.value.render() == (
        f"error: Java 17 or 21 is needed, {found} at {home}/bin/java: "
        "install openjdk-17-jre-headless or set JAVA_HOME"
    )


def test_no_java_is_said_in_one_line_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EngineError) as caught:
        check_java()

    assert caught.value.render() == (
        "error: Java 17 or 21 is needed, found none: "
        "install openjdk-17-jre-headless or set JAVA_HOME"
    )


def test_a_java_home_that_points_nowhere_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))

    with pytest.raises(EngineError, match=r"found none that runs at .*/gone/bin/java"):
        check_java()


def test_java_home_goes_before_path_as_in_sparks_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = fake_java(tmp_path / "path", "")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == tmp_path / "home" / "bin" / "java"

    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == on_path / "bin" / "java"


def test_the_makefile_can_check_java_before_anything_is_installed(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", 'openjdk version "11.0.22"')

    done = subprocess.run(
        [sys.executable, "-S", "-m", "sqlmig.spark.java"],
        cwd=ROOT,
        env={**os.environ, "JAVA_HOME": str(home), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("error: Java 17 or 21 is needed, found 11 at "), done.stderr
    assert done.stderr.count("\n") == 1, "one line"
