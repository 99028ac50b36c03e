"""`sqlmig[connect]`: what a machine without Spark and Java installs, and all that it can do."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cluster.servers import Server, free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(
    client: Path, environment: Mapping[str, str], folder: Path, *words: str, code: int = 0
) -> tuple[str, str]:
    """Run the installed `sqlmig`; its standard output and error."""
    done = subprocess.run(
        [client.parent / "sqlmig", *words],
        cwd=folder,
        env={**environment, "PYTHONWARNINGS": "default"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def debugged(client: Path, environment: Mapping[str, str], folder: Path) -> str:
    """All that a failing `sqlmig --debug upgrade` says."""
    done = subprocess.run(
        [client.parent / "sqlmig", "--debug", "upgrade", "--yes"],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    return done.stdout + done.stderr


def remote(folder: Path, address: str, *, conf: str = "{}") -> None:
    """Let the project's target be the server at `address`."""
    config = folder / "sqlmig.yml"
    text, count = re.subn(
        r'spark: \{master: "local\[\*\]"\}',
        f'spark: {{remote: "{address}", conf: {conf}}}',
        config.read_text(encoding="utf-8"),
    )
    assert count == 1
    config.write_text(text, encoding="utf-8")


def test_a_client_without_java_deploys_and_goes_back(
    client: Path, without_java: Mapping[str, str], connect: Server, tmp_path: Path
) -> None:
    # given: an environment with neither pyspark's Spark nor Java, and a new project
    packages = subprocess.run(
        [client, "-m", "pip", "list", "--format", "freeze"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.lower()
    assert "pyspark-client==4.2.0" in packages
    assert not re.search(r"^(pyspark|py4j|delta-spark)==", packages, re.MULTILINE)
    assert not any((Path(p) / "java").exists() for p in without_java["PATH"].split(os.pathsep))
    assert "JAVA_HOME" not in without_java
    run(client, without_java, tmp_path, "init", "shop")
    shop = tmp_path / "shop"
    remote(shop, connect.address)

    def sqlmig(*words: str) -> str:
        out, err = run(client, without_java, shop, *words)
        return out + err

    # when
    sqlmig("revision", "-m", "first")
    plan = sqlmig("plan")
    upgraded = sqlmig("upgrade", "head", "--yes")
    sqlmig("exec", "INSERT INTO customers VALUES (1, 'Bob')")
    sqlmig("exec", "INSERT INTO orders VALUES (1, 1, 20.00, DATE '2026-02-01')")
    sqlmig("run", "--once")
    totals = sqlmig("query", "SELECT * FROM customer_totals", "--format", "csv")
    back = sqlmig("downgrade", "-1")

    # then
    assert "create table `customers`" in plan
    assert "is deployed." in upgraded
    assert totals.splitlines()[0].startswith("customer_id,customer_name,")
    assert totals.splitlines()[1] == "1,Bob,1,20.00"
    assert "base is deployed." in back


def test_a_client_says_what_is_wrong_with_its_target(
    client: Path, without_java: Mapping[str, str], connect: Server, tmp_path: Path
) -> None:
    # given
    run(client, without_java, tmp_path, "init", "shop")
    shop = tmp_path / "shop"
    run(client, without_java, shop, "revision", "-m", "first")
    config = (shop / "sqlmig.yml").read_text(encoding="utf-8")
    nobody = f"sc://127.0.0.1:{free_port()}"

    # when: Spark would have to be started here
    _, starts = run(client, without_java, shop, "upgrade", "--yes", code=1)

    # when: nobody listens, and the address holds a token
    remote(shop, f"{nobody}/;token=${{env:TOKEN}}")
    begun = time.monotonic()
    secret = {**without_java, "TOKEN": "t0p-s3cret"}
    silent = debugged(client, secret, shop)
    waited = time.monotonic() - begun
    _, unset = run(client, without_java, shop, "upgrade", "--yes", code=1)

    # when: a setting is the server's own
    (shop / "sqlmig.yml").write_text(config, encoding="utf-8")
    remote(shop, connect.address, conf="{spark.executor.memory: 2g}")
    _, static = run(client, without_java, shop, "upgrade", "--yes", code=1)

    # then
    assert "error: this target starts Spark, and only Spark's client is installed" in starts
    assert f"error: no Spark answers at {nobody}: failed to connect" in silent
    assert "Traceback" in silent, "asked for with --debug"
    assert "t0p-s3cret" not in silent
    assert waited < 90, "seconds"
    assert "error: target `local`: the environment variable TOKEN is not set" in unset
    assert "hint: export TOKEN=..." in unset
    assert "error: `spark.executor.memory` can't be set over Spark Connect" in static
    assert "hint: set it where the server is started" in static
