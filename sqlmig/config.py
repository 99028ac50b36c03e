"""`sqlmig.yml` -> Config. It reads and checks; it opens no target.

The file is read as YAML nodes, not as values: each error has a line and a column, and a variable
such as `2026-01-01` stays the text that was written.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from sqlmig.durations import parse_duration
from sqlmig.errors import ConfigError, Location

if TYPE_CHECKING:
    from yaml import Mark, Node

FILE_NAME = "sqlmig.yml"
BOOTSTRAP_POLICIES = ("await_approval", "allow", "reject")

_MOST_WORKERS = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PIPELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_A_SECRET = re.compile(r"\$\{(?!env:[A-Za-z_][A-Za-z0-9_]*\})[^}]*\}?")


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
    """

    name: str
    warehouse: str
    spark: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    bootstrap_policy: str = "await_approval"
    vars: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    runner: RunnerConfig = RunnerConfig()
    storage_options: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


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
                location=Location(_shown(self.path)),
                hint=_choices(wanted, self.targets, "the targets are"),
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
        raise ConfigError(f"can't be read: {reason}", location=Location(_shown(file))) from error
    return parse_config(text, file)


def parse_config(text: str, path: Path) -> Config:
    """Read the text of `sqlmig.yml`; `path` is where it lies, and need not exist.

    Raises:
        ConfigError: with file, line and column.
    """
    path = path.absolute()
    reader = _Reader(_shown(path))
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
            _choices(default, targets, "the targets are"),
        )
    return Config(path, path.parent, pipeline, MappingProxyType(targets), default)


def _read_target(reader: _Reader, name: str, node: Node, root: Path) -> Target:
    keys = ("spark", "warehouse", "storage_options", "bootstrap_policy", "vars", "runner")
    top = reader.mapping(node, name, keys)
    warehouse = reader.text(top.get("warehouse"), "warehouse", missing_in=node)
    policy_node = top.get("bootstrap_policy")
    policy = reader.text(policy_node, "bootstrap_policy", default=BOOTSTRAP_POLICIES[0])
    if policy not in BOOTSTRAP_POLICIES:
        reader.fail(
            policy_node,
            f"`{policy}` is no bootstrap policy",
            _choices(policy, BOOTSTRAP_POLICIES, "one of"),
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
    )


def _read_runner(reader: _Reader, node: Node | None) -> RunnerConfig:
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


def _read_spark(reader: _Reader, node: Node | None) -> Mapping[str, Any]:
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


class _Reader:
    """Reads YAML nodes and knows where they stand in the file."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def document(self, text: str) -> Node | None:
        """The root node; None for an empty file."""
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            node: Node | None = yaml.compose(text, Loader=loader)
        except yaml.YAMLError as error:
            mark: Mark | None = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "?"
            raise ConfigError(
                f"not YAML: {problem}", location=self._at(mark), hint=getattr(error, "note", None)
            ) from error
        return node

    def mapping(
        self, node: Node | None, name: str, known: tuple[str, ...] | None = None
    ) -> dict[str, Node]:
        """Key -> node; a node that is missing or empty is an empty mapping.

        Args:
            known: the keys that may stand there; None for any.
        """
        if node is None or _is_null(node):
            return {}
        from yaml import MappingNode

        if not isinstance(node, MappingNode):
            self.fail(node, f"`{name}` must be a mapping", "write `key: value` lines below it")
        found: dict[str, Node] = {}
        for key_node, value in node.value:
            key = self.text(key_node, "key")
            if key in found:
                self.fail(key_node, f"`{key}` stands there twice", "keep one of them")
            if known is not None and key not in known:
                self.fail(
                    key_node, f"unknown key `{key}` in `{name}`", _choices(key, known, "known are")
                )
            found[key] = value
        return found

    def texts(self, node: Node | None, name: str) -> dict[str, str]:
        """A mapping of text to text, sorted."""
        pairs = self.mapping(node, name)
        return {key: self.text(value, key) for key, value in sorted(pairs.items())}

    def settings(self, node: Node | None, name: str) -> dict[str, str]:
        """A mapping like `texts`, whose values may hold `${env:NAME}` and no other variable."""
        pairs = self.mapping(node, name)
        return {key: self.setting(value, key) for key, value in sorted(pairs.items())}

    def setting(self, node: Node, name: str) -> str:
        """A scalar that may hold `${env:NAME}` and no other variable."""
        value = self.text(node, name)
        wrong = _NOT_A_SECRET.search(value)
        if wrong:
            self.fail(node, f"`{wrong[0]}` can't stand here", "only `${env:NAME}`, a secret, can")
        return value

    def text(
        self,
        node: Node | None,
        name: str,
        *,
        default: str | None = None,
        missing_in: Node | None = None,
    ) -> str:
        """A scalar as it was written; `true` and `false` in lower case."""
        if node is None or _is_null(node):
            if default is not None:
                return default
            where = node if node is not None else missing_in
            return self.fail(where, f"`{name}` is missing", f"write `{name}: ...`")
        from yaml import ScalarNode

        if not isinstance(node, ScalarNode):
            return self.fail(node, f"`{name}` must be text", f"write `{name}: ...` on one line")
        value = str(node.value)
        if node.tag == "tag:yaml.org,2002:bool":
            return "true" if value.lower() in ("true", "yes", "on") else "false"
        return value

    def seconds(self, node: Node, name: str, *, may_be_zero: bool = False) -> float:
        """A duration, in seconds."""
        text = self.text(node, name)
        value = parse_duration(text)
        if value is None or (value <= 0 and not may_be_zero):
            self.fail(node, f"`{text}` is no duration", "write `5s`, `10m`, `2h`, `7d`")
        return value

    def fail(self, node: Node | None, message: str, hint: str) -> NoReturn:
        """Raise the error at the node's place."""
        mark = None if node is None else node.start_mark
        raise ConfigError(message, location=self._at(mark), hint=hint)

    def _at(self, mark: Mark | None) -> Location:
        if mark is None:
            return Location(self._shown)
        return Location(self._shown, mark.line + 1, mark.column + 1)


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


def _shown(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


def _choices(word: str, known: Iterable[str], otherwise: str) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(word.lower(), names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"{otherwise} {', '.join(f'`{name}`' for name in names)}"


def _is_null(node: Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null"
