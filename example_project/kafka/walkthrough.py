"""A shop's pipeline from Kafka to Kafka, changed and changed back while it runs.

The commands are typed in this process, so that Spark starts once for them, but for `sqlmig run`,
which has one of its own. `make example-kafka` calls it.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from types import FrameType
from typing import Any

from example_project.kafka import shop
from example_project.kafka.broker import Broker
from example_project.kafka.reader import Reader
from example_project.kafka.runner import Runner
from example_project.walkthrough import begin, sqlmig
from sqlmig import commands
from sqlmig.errors import SqlmigError

ROOT = Path(__file__).resolve().parent
FIRST, SECOND = "5b1d7e30c942", "9e64a2f80b17"
TOTALS = "customer_totals"
Rows = Mapping[str, Mapping[str, Any]]
"""Key -> row."""
QUERY = f"SELECT * FROM {TOTALS} WHERE name <> 'Eve' ORDER BY ALL"


def walk() -> None:
    """Walk the path. Kafka and the runner end with it, however it ends."""
    begin(ROOT)
    print("Orders come from a Kafka topic, customers as files; totals go to another topic.")
    print("Kafka starts; the first time it is downloaded (90 MB).")
    with (
        TemporaryDirectory(prefix="sqlmig-kafka-") as folder,
        Broker(Path(folder) / "kafka") as kafka,
    ):
        for topic in (shop.TOPIC, TOTALS):
            kafka.create_topic(topic)
        # `${env:KAFKA_SERVERS}` in the SQL: each start may have another port
        os.environ["KAFKA_SERVERS"] = kafka.bootstrap_servers
        print(f"Kafka 4.1.0 listens on {kafka.bootstrap_servers}.")
        reader = Reader(kafka, TOTALS)
        deploy(kafka, reader)
        with Runner(Path(folder) / "run.log") as runner:
            total = change_while_it_runs(kafka, reader, runner)
        check(reader, total, len(kafka.consume(shop.TOPIC)))


def deploy(kafka: Broker, reader: Reader) -> None:
    """The first revision, at rest: six orders are there already."""
    kafka.produce(shop.TOPIC, shop.FIRST_ORDERS)
    sqlmig("history")
    sqlmig("upgrade", f"{SECOND}-1", "--yes")
    sqlmig("query", QUERY)
    tell_news(reader, "The sink has sent these rows to its topic, each under its key")


def change_while_it_runs(kafka: Broker, reader: Reader, runner: Runner) -> tuple[int, Decimal]:
    """Upgrade and downgrade while orders keep coming.

    Returns:
        How many of Eve's orders stand, and what they come to.
    """
    print("\n$ sqlmig run &")
    with shop.Eve(kafka) as eve:
        print("From now on Eve, customer 5, orders four times a second; we look at the others.")
        print("Ann's order 12 is paid, and Cid's order 15 is deleted.")
        kafka.produce(shop.TOPIC, shop.LATER)
        wait_for(reader, runner, holds=lambda rows: orders(rows, 1) == 2 and orders(rows, 3) == 0)
        tell_news(reader, "The sink's topic has got one row, and a key without one")
        tell_runner(runner)

        print("\nAn order that is shipped counts no more: a mistake. The next revision mends it.")
        sqlmig("plan")
        sqlmig("upgrade", "head", "--yes")
        wait_for(reader, runner, holds=lambda rows: orders(rows, 2) == 2 and orders(rows, 4) == 1)
        tell_runner(runner)
        tell_news(reader, "The sink's topic has got the difference: one row changed, one is new")
        sqlmig("status")

        print("\nAnd back, also while it runs. Then Eve stops, and the runner reads what is left.")
        sqlmig("downgrade", "-1")
        eve.stop()
        records = len(shop.FIRST_ORDERS) + len(shop.LATER) + eve.records
        wait_for(
            reader,
            runner,
            holds=lambda rows: (
                orders(rows, 2) == 1
                and orders(rows, 4) == 0
                and orders(rows, eve.KEY) == eve.total[0]
                and records_read() == records
            ),
        )
        tell_news(reader, "The sink's topic has got what takes the difference back")
    print("\nCtrl-C ends the runner.")
    runner.interrupt()
    tell_runner(runner)
    return eve.total


def check(reader: Reader, total: tuple[int, Decimal], records: int) -> None:
    """Show that nothing was lost or read twice; ends with 1 if something was.

    Args:
        total: how many of Eve's orders stand, and what they come to.
        records: how many the topic of orders has.
    """
    view = query(f"SELECT * FROM {TOTALS} ORDER BY customer_id")
    rows = list(reader.rows().values())
    of_eve = sum(message.key == shop.Eve.KEY.encode() for message in reader.records)
    eve, verdict = view[-1], "the rows of the view" if rows == view else "OTHER ROWS THAN THE VIEW"
    print(f"""
the shop's topic has       {records} records
the pipeline has read      {records_read()} records
Eve's orders that stand    {total[0]}, of {total[1]:.2f} together
those in the view          {eve["orders"]}, of {eve["total"]:.2f} together
the sink has sent          {len(reader.records) - of_eve} records of the four, {of_eve} of Eve
whoever reads them has     {verdict}""")
    if (records_read(), (eve["orders"], eve["total"]), rows) != (records, total, view):
        raise SystemExit("error: records were lost, or read twice")
    print("\nNo record was lost, and none was read twice.")


def query(sql: str) -> list[dict[str, Any]]:
    """The rows of a query, without a command."""
    return [dict(row) for row in commands.query(commands.open_project(), sql).rows]


def records_read() -> int:
    """How many records the source of orders has read, as `sqlmig status` shows it."""
    return int(commands.status(commands.open_project()).connectors["orders.feed"]["rows"])


def orders(rows: Rows, customer: int | str) -> int:
    """How many orders of a customer the sink's topic tells of."""
    row = rows.get(str(customer))
    return row["orders"] if row else 0


def wait_for(reader: Reader, runner: Runner, *, holds: Callable[[Rows], bool]) -> None:
    """Wait until something holds of the rows that the sink's topic makes."""
    runner.wait(lambda: holds(reader.rows()), f"records in the topic `{TOTALS}`")


def tell_news(reader: Reader, title: str) -> None:
    """Print the records that the sink sent since this was last called, but for Eve's."""
    print(f"\n{title}:", *reader.news(without=shop.Eve.KEY), sep="\n")


def tell_runner(runner: Runner) -> None:
    """Print what the runner said since this was last called."""
    print("\n`sqlmig run` said:", *(f"  | {line}" for line in runner.said()), sep="\n")


def main() -> None:
    """Walk, and word what ends the walk early: Ctrl-C, SIGTERM, SIGHUP, an error."""
    interrupted = Event()

    def end(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        logging.disable()  # py4j tells of every call that is cut off
        raise KeyboardInterrupt

    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(kind, end)
    try:
        walk()
    except BaseException as error:
        if interrupted.is_set():  # whatever py4j has made of it; a command so ended ends with 1
            sys.exit("error: interrupted; the runner and Kafka have ended")
        if isinstance(error, SqlmigError):
            sys.exit(error.render())
        raise


if __name__ == "__main__":
    main()
