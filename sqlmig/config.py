"""`sqlmig.yml` -> Config. It reads and checks; it opens no target."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlmig.errors import ConfigError, Location
from sqlmig.yaml_reader import YamlReader, choices, shown

if TYPE_CHECKING:
    from yaml import Node

FILE_NAME = "sqlmig.yml"
BOOTSTRAP_POLICIES = ("await_approval", "allow", "reject")
UNKNOWN_REVISIONS = ("reverted", "true", "false")
_REQUIREMENTS = ("require_clean", "require_pushed", "require_signed")
_GIT_KEYS = (*_REQUIREMENTS, "require_branch", "allow_unknown_revision")

_MOST_WORKERS = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PIPELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class RunnerConfig:
    """How a target's pipeline is run: its `runner` in `sqlmig.yml`. All times are in seconds.

    Args:
        interval: from the begin of one tick to the begin of the next.
        lease: how long a process that gives no sign of life still counts as at work.
        stop_timeout: how long an upgrade waits for the tick under way to end.
        keep_checkpoints: how long `query --at` goes back.
        workers: views computed at a time.
        vacuum_every: how often files that no kept cut needs are removed; None for never.
    """

    interval: float = 5.0
    lease: float = 60.0
    stop_timeout: float = 300.0
    keep_checkpoints: float = 7 * 86400.0
    workers: int = 4
    vacuum_every: float | None = 86400.0


@dataclass(frozen=True)
class GitPolicy:
    """What a target asks of the checkout that is deployed to it.

    Args:
        require_clean: nothing in the project's folder differs from its commit.
        require_pushed: the commit is on a branch of a remote.
        require_branch: the branch, or a pattern such as `release/*`; None for any.
        require_signed: the commit has a good signature.
        allow_unknown_revision: one of UNKNOWN_REVISIONS: whether an upgrade may take a deployed
            revision back that has no file here.
    """

    require_clean: bool = False
    require_pushed: bool = False
    require_branch: str | None = None
    require_signed: bool = False
    allow_unknown_revision: str = "reverted"


@dataclass(frozen=True)
class Target:
    """A named place to deploy to.

    Args:
        name: its key in `targets`.
        warehouse: an absolute path or a URL, without a slash at the end.
        spark: what `open_session` takes: `master` or `remote`, and `conf`, text -> text.
        bootstrap_policy: one of BOOTSTRAP_POLICIES.
        vars: what `${name}` in the SQL stands for.
        runner: how the pipeline is run.
        storage_options: what delta-rs is told of the warehouse's object store. Values of these and
            of `spark` may hold `${env:NAME}`, which is put in when the target is opened.
        git: what is asked of the checkout.
    """

    name: str
    warehouse: str
    spark: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    bootstrap_policy: str = "await_approval"
    vars: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    runner: RunnerConfig = RunnerConfig()
    storage_options: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    git: GitPolicy = GitPolicy()


@dataclass(frozen=True)
class Config:
    """A read `sqlmig.yml`.

    Args:
        path: the file, absolute.
        root: its folder: the project.
        pipeline: the pipeline's name.
        targets: name -> target, sorted.
        default_target: the name of the target that is meant when none is named.
    """

    path: Path
    root: Path
    pipeline: str
    targets: Mapping[str, Target]
    default_target: str

    def target(self, name: str | None = None) -> Target:
        """The target called `name`; by default that of SQLMIG_TARGET, else the default target.

        Raises:
            ConfigError: there is no such target.
        """
        wanted = name or os.environ.get("SQLMIG_TARGET") or self.default_target
        if wanted not in self.targets:
            raise ConfigError(
                f"no target `{wanted}`",
                location=Location(shown(self.path)),
                hint=choices(wanted, self.targets, "the targets are"),
            )
        return self.targets[wanted]


def load_config(path: str | Path | None = None) -> Config:
    """Read a project's config.

    Args:
        path: `sqlmig.yml` under any name, or its folder; by default SQLMIG_CONFIG, else the file
            in the current folder or in the nearest folder above.

    Raises:
        ConfigError: there is none, it can't be read, or it says something impossible.
    """
    file = _find(path or os.environ.get("SQLMIG_CONFIG") or None)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"can't be read: {reason}", location=Location(shown(file))) from error
    return parse_config(text, file)


def parse_config(text: str, path: Path) -> Config:
    """Read the text of `sqlmig.yml`; `path` is where it lies, and need not exist.

    Raises:
        ConfigError: with file, line and column.
    """
    path = path.absolute()
    reader = YamlReader(shown(path))
    top = reader.mapping(
        reader.document(text), "sqlmig.yml", ("pipeline", "targets", "default_target")
    )
    pipeline = reader.text(top.get("pipeline"), "pipeline", default=path.parent.name)
    if not _PIPELINE.fullmatch(pipeline):
        reader.fail(
            top.get("pipeline"),
            f"`{pipeline}` is no name for a pipeline",
            "letters, digits, `_`, `-` and `.`, with a letter or digit first",
        )
    nodes = reader.mapping(top.get("targets"), "targets")
    if not nodes:
        reader.fail(
            top.get("targets"), "`targets` is empty", "name one: `local: {warehouse: warehouse}`"
        )
    targets = {
        name: _read_target(reader, name, node, path.parent) for name, node in sorted(nodes.items())
    }
    only = next(iter(targets)) if len(targets) == 1 else None
    default = reader.text(top.get("default_target"), "default_target", default=only or "")
    if default not in targets:
        reader.fail(
            top.get("default_target"),
            f"`default_target` names no target: `{default}`"
            if default
            else "`default_target` is missing",
            choices(default, targets, "the targets are"),
        )
    return Config(path, path.parent, pipeline, MappingProxyType(targets), default)


def _read_target(reader: YamlReader, name: str, node: Node, root: Path) -> Target:
    keys = ("spark", "warehouse", "storage_options", "bootstrap_policy", "vars", "runner")
    top = reader.mapping(node, name, (*keys, *_GIT_KEYS))
    warehouse = reader.text(top.get("warehouse"), "warehouse", missing_in=node)
    policy_node = top.get("bootstrap_policy")
    policy = reader.text(policy_node, "bootstrap_policy", default=BOOTSTRAP_POLICIES[0])
    if policy not in BOOTSTRAP_POLICIES:
        reader.fail(
            policy_node,
            f"`{policy}` is no bootstrap policy",
            choices(policy, BOOTSTRAP_POLICIES, "one of"),
        )
    variables = reader.texts(top.get("vars"), "vars")
    for variable in variables:
        if not _VARIABLE.fullmatch(variable):
            reader.fail(
                top.get("vars"),
                f"`{variable}` is no name for a variable",
                "letters, digits and `_`, with no digit first",
            )
    return Target(
        name,
        _place(warehouse, root),
        _read_spark(reader, top.get("spark")),
        policy,
        MappingProxyType(variables),
        _read_runner(reader, top.get("runner")),
        MappingProxyType(reader.settings(top.get("storage_options"), "storage_options")),
        _read_git_policy(reader, top),
    )


def _read_git_policy(reader: YamlReader, nodes: Mapping[str, Node]) -> GitPolicy:
    unknown_node = nodes.get("allow_unknown_revision")
    unknown = reader.text(
        unknown_node, "allow_unknown_revision", default=GitPolicy.allow_unknown_revision
    )
    if unknown not in UNKNOWN_REVISIONS:
        reader.fail(
            unknown_node,
            f"`{unknown}` is none of the answers to `allow_unknown_revision`",
            choices(unknown, UNKNOWN_REVISIONS, "one of"),
        )
    return GitPolicy(
        **{name: reader.flag(nodes.get(name), name) for name in _REQUIREMENTS},
        require_branch=reader.text(nodes.get("require_branch"), "require_branch", default="")
        or None,
        allow_unknown_revision=unknown,
    )


def _read_runner(reader: YamlReader, node: Node | None) -> RunnerConfig:
    names = ("interval", "lease", "stop_timeout", "keep_checkpoints")
    nodes = reader.mapping(node, "runner", (*names, "vacuum_every", "workers"))
    seconds: dict[str, float] = {}
    for name in names:
        if name in nodes:
            seconds[name] = reader.seconds(nodes[name], name, may_be_zero=name == "interval")
    workers = RunnerConfig.workers
    if "workers" in nodes:
        text = reader.text(nodes["workers"], "workers")
        if not text.isdigit() or not 1 <= int(text) <= _MOST_WORKERS:
            reader.fail(
                nodes["workers"],
                f"`{text}` is no number of workers",
                f"a whole number from 1 to {_MOST_WORKERS}",
            )
        workers = int(text)
    every = RunnerConfig.vacuum_every
    if "vacuum_every" in nodes:
        is_off = reader.text(nodes["vacuum_every"], "vacuum_every") in ("off", "false")
        every = None if is_off else reader.seconds(nodes["vacuum_every"], "vacuum_every")
    return RunnerConfig(**seconds, workers=workers, vacuum_every=every)


def _read_spark(reader: YamlReader, node: Node | None) -> Mapping[str, Any]:
    nodes = reader.mapping(node, "spark", ("master", "remote", "conf"))
    if "master" in nodes and "remote" in nodes:
        reader.fail(
            nodes["remote"],
            "`master` and `remote` exclude each other",
            "`remote` is a Spark Connect server, `master` a cluster or local[*]",
        )
    spark: dict[str, Any] = {
        key: reader.setting(nodes[key], key) for key in ("master", "remote") if key in nodes
    }
    conf = reader.settings(nodes.get("conf"), "conf")
    for key, value in conf.items():
        if key.lower() == "spark.sql.casesensitive" and value.lower() == "true":
            reader.fail(
                nodes.get("conf"),
                "`spark.sql.caseSensitive: true` is not supported",
                "sqlmig takes `Grade` and `grade` for one name, as Spark does by default",
            )
    spark["conf"] = MappingProxyType(conf)
    return MappingProxyType(spark)


def _find(path: str | Path | None) -> Path:
    if path is not None:
        given = Path(path).expanduser()
        file = given / FILE_NAME if given.is_dir() else given
        if file.is_file():
            return file.absolute()
        raise ConfigError(
            "no such file",
            location=Location(str(file)),
            hint=f"`sqlmig init {file.parent}` makes a new project there",
        )
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise ConfigError(
        f"no {FILE_NAME} here or in a folder above",
        hint="`sqlmig init DIR` makes a new project; `-c FILE` names the config of another one",
    )


def _place(warehouse: str, root: Path) -> str:
    if _URL.match(warehouse):
        return warehouse.rstrip("/")
    return os.path.normpath(root / Path(warehouse).expanduser())
