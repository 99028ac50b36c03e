"""`sqlmig.yml`: what it may say, and where and how a mistake is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from sqlmig.config import GitPolicy, load_config, parse_config
from sqlmig.errors import ConfigError

SCHOOL = """\
pipeline: school
targets:
  local:
    spark: {master: "local[*]"}
    warehouse: warehouse
  prod:
    spark: {remote: "sc://spark.internal:15002", conf: {spark.sql.ansi.enabled: true}}
    warehouse: s3a://lake/school/
    bootstrap_policy: allow
    vars: {landing: "s3a://landing/school", since: 2026-01-01, year: 2026}
default_target: local
"""


def project(folder: Path, text: str = SCHOOL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sqlmig.yml").write_text(text, encoding="utf-8")
    return folder


def error_of(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(dedent(text), Path("/school/sqlmig.yml"))
    return caught.value


def test_the_config_of_the_design_is_read_whole() -> None:
    config = parse_config(SCHOOL, Path("/school/sqlmig.yml"))

    assert (config.root, config.pipeline) == (Path("/school"), "school")
    assert list(config.targets) == ["local", "prod"]
    local, prod = config.targets["local"], config.targets["prod"]
    assert local.spark == {"master": "local[*]", "conf": {}}
    assert local.warehouse == "/school/warehouse", "a relative path is against the project's root"
    assert local.bootstrap_policy == "await_approval", "nothing is changed unasked by default"
    assert prod.spark["remote"] == "sc://spark.internal:15002"
    assert prod.spark["conf"] == {"spark.sql.ansi.enabled": "true"}
    assert prod.warehouse == "s3a://lake/school", "a URL stays one"
    assert prod.bootstrap_policy == "allow"


def test_a_variable_is_the_text_that_was_written() -> None:
    config = parse_config(SCHOOL, Path("/school/sqlmig.yml"))

    assert config.targets["prod"].vars == {
        "landing": "s3a://landing/school",
        "since": "2026-01-01",
        "year": "2026",
    }


def test_secrets_stay_as_they_are_written_until_the_target_is_opened() -> None:
    config = parse_config(
        "targets:\n  lake:\n    warehouse: s3://lake/school\n"
        "    storage_options: {aws_region: eu-west-1, aws_secret_access_key: '${env:KEY}'}\n"
        "    spark: {remote: 'sc://a:443/;token=${env:TOKEN}', conf: {spark.a: '${env:KEY}'}}\n",
        Path("/school/sqlmig.yml"),
    )

    lake = config.targets["lake"]
    assert lake.storage_options == {
        "aws_region": "eu-west-1",
        "aws_secret_access_key": "${env:KEY}",
    }
    assert lake.spark == {
        "remote": "sc://a:443/;token=${env:TOKEN}",
        "conf": {"spark.a": "${env:KEY}"},
    }


def test_one_target_is_enough_and_is_the_default() -> None:
    config = parse_config("targets: {here: {warehouse: w}}", Path("/school/sqlmig.yml"))

    assert config.target().name == "here"
    assert config.pipeline == "school", "the pipeline is named for its folder"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "/school/sqlmig.yml: `targets` is empty", "name one: `local: {warehouse: warehouse}`"),
        ("- a\n", "/school/sqlmig.yml:1:1: `sqlmig.yml` must be a mapping", "`key: value` lines"),
        ("a: [\n", "/school/sqlmig.yml:2:1: not YAML: ", ""),
        ("tragets: {}\n", "/school/sqlmig.yml:1:1: unknown key `tragets` in", "mean `targets`?"),
        (
            "targets:\n  a:\n    warehuose: x\n",
            "/school/sqlmig.yml:3:5: unknown key `warehuose` in `a`",
            "did you mean `warehouse`?",
        ),
        (
            "targets:\n  a:\n    spark: {}\n",
            "/school/sqlmig.yml:3:5: `warehouse` is missing",
            "write `warehouse: ...`",
        ),
        (
            "targets: {a: {warehouse: [x]}}\n",
            "/school/sqlmig.yml:1:26: `warehouse` must be text",
            "on one line",
        ),
        (
            "targets: {a: {warehouse: x, spark: local}}\n",
            "/school/sqlmig.yml:1:36: `spark` must be a mapping",
            "`key: value` lines",
        ),
        (
            "targets: {a: {warehouse: x, bootstrap_policy: alow}}\n",
            "/school/sqlmig.yml:1:47: `alow` is no bootstrap policy",
            "did you mean `allow`?",
        ),
        (
            "targets: {a: {warehouse: x, bootstrap_policy: never}}\n",
            "/school/sqlmig.yml:1:47: `never` is no bootstrap policy",
            "one of `allow`, `await_approval`, `reject`",
        ),
        (
            "targets: {a: {warehouse: x, spark: {master: m, remote: r}}}\n",
            "/school/sqlmig.yml:1:56: `master` and `remote` exclude each other",
            "Spark Connect",
        ),
        (
            "targets:\n  a:\n    warehouse: x\n    spark:\n"
            "      conf:\n        spark.sql.caseSensitive: true\n",
            "/school/sqlmig.yml:6:9: `spark.sql.caseSensitive: true` is not supported",
            "`Grade` and `grade`",
        ),
        (
            "targets: {a: {warehouse: x, storage_options: {key: '${secret}'}}}\n",
            "/school/sqlmig.yml:1:52: `${secret}` can't stand here",
            "only `${env:NAME}`",
        ),
        (
            "targets: {a: {warehouse: x, spark: {remote: 'sc://a/;token=${env:}'}}}\n",
            "/school/sqlmig.yml:1:45: `${env:}` can't stand here",
            "only `${env:NAME}`",
        ),
        (
            "targets: {a: {warehouse: x, storage_options: s3}}\n",
            "/school/sqlmig.yml:1:46: `storage_options` must be a mapping",
            "`key: value` lines",
        ),
        (
            "targets: {a: {warehouse: x}, a: {warehouse: y}}\n",
            "/school/sqlmig.yml:1:30: `a` stands there twice",
            "keep one",
        ),
        (
            "targets: {a: {warehouse: x, vars: {9a: y}}}\n",
            "/school/sqlmig.yml:1:35: `9a` is no name for a variable",
            "no digit first",
        ),
        (
            "targets: {a: {warehouse: x}, b: {warehouse: y}}\n",
            "/school/sqlmig.yml: `default_target` is missing",
            "the targets are `a`, `b`",
        ),
        (
            "targets: {a: {warehouse: x}}\ndefault_target: b\n",
            "/school/sqlmig.yml:2:17: `default_target` names no target: `b`",
            "the targets are `a`",
        ),
        (
            "pipeline: a/b\ntargets: {a: {warehouse: x}}\n",
            "/school/sqlmig.yml:1:11: `a/b` is no name for a pipeline",
            "letters, digits",
        ),
    ],
)
def test_a_mistake_is_shown_with_its_place_and_a_hint(text: str, message: str, hint: str) -> None:
    error = error_of(text)

    assert str(error).startswith(message)
    assert hint in (error.hint or "")


def test_the_config_is_found_from_a_folder_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "school")
    below = root / "pipeline" / "marts"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)

    assert load_config().root == root


def test_a_file_or_its_folder_can_be_named(tmp_path: Path) -> None:
    root = project(tmp_path / "school")

    assert load_config(root).path == root / "sqlmig.yml"
    assert load_config(root / "sqlmig.yml").path == root / "sqlmig.yml"


def test_the_environment_names_the_config_and_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "school")
    monkeypatch.setenv("SQLMIG_CONFIG", str(root))
    monkeypatch.setenv("SQLMIG_TARGET", "prod")

    config = load_config()

    assert config.target().name == "prod"
    assert config.target("local").name == "local", "a name that is given goes before"


def test_an_unknown_target_names_the_known_ones(tmp_path: Path) -> None:
    config = load_config(project(tmp_path / "school"))

    with pytest.raises(ConfigError) as caught:
        config.target("porod")

    assert caught.value.message == "no target `porod`"
    assert caught.value.hint == "did you mean `prod`?"


def test_without_a_config_the_hint_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError) as here:
        load_config()
    with pytest.raises(ConfigError) as named:
        load_config(tmp_path / "no.yml")

    assert here.value.message == "no sqlmig.yml here or in a folder above"
    assert "`sqlmig init DIR`" in (here.value.hint or "")
    assert "`-c FILE`" in (here.value.hint or "")
    assert str(named.value) == f"{tmp_path / 'no.yml'}: no such file"


def test_how_often_the_runner_vacuums_is_a_duration_or_off(tmp_path: Path) -> None:
    def every(text: str) -> float | None:
        targets = f"targets: {{local: {{warehouse: w, runner: {{vacuum_every: {text}}}}}}}\n"
        return parse_config(targets, tmp_path / "sqlmig.yml").target().runner.vacuum_every

    assert (every("12h"), every("off"), every("'off'")) == (43200.0, None, None)
    for text in ("often", "0s"):
        with pytest.raises(ConfigError, match=f"`{text}` is no duration"):
            every(text)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sqlmig.yml").write_bytes(b"pipeline: \xff\n")

    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        load_config(tmp_path)


def test_importing_the_config_does_not_import_yaml() -> None:
    code = "import sys, sqlmig.config; print('yaml' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False", "commands that fail early should not pay for YAML"


def test_what_a_target_asks_of_the_checkout_is_read() -> None:
    config = parse_config(
        "targets:\n  prod:\n    warehouse: w\n    require_clean: yes\n    require_pushed: true\n"
        "    require_signed: false\n    require_branch: release/*\n"
        "    allow_unknown_revision: 'false'\n  local: {warehouse: l, allow_unknown_revision: on}\n"
        "default_target: prod\n",
        Path("/school/sqlmig.yml"),
    )

    assert config.targets["prod"].git == GitPolicy(
        require_clean=True,
        require_pushed=True,
        require_branch="release/*",
        require_signed=False,
        allow_unknown_revision="false",
    )
    assert config.targets["local"].git == GitPolicy(allow_unknown_revision="true")
    assert GitPolicy().allow_unknown_revision == "reverted"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "require_clean: 1",
            "/school/sqlmig.yml:4:20: `require_clean` must be true or false"
            "\n\nhint: write `require_clean: true`",
        ),
        (
            "allow_unknown_revision: revert",
            "/school/sqlmig.yml:4:29: `revert` is none of the answers to `allow_unknown_revision`"
            "\n\nhint: did you mean `reverted`?",
        ),
        (
            "require_branches: main",
            "/school/sqlmig.yml:4:5: unknown key `require_branches` in `prod`"
            "\n\nhint: did you mean `require_branch`?",
        ),
    ],
)
def test_a_mistake_in_it_is_told_with_its_place(line: str, told: str) -> None:
    error = error_of(f"targets:\n  prod:\n    warehouse: w\n    {line}\n")

    assert error.render() == f"error: {told}"
