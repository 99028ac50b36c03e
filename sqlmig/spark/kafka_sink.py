"""Sinks into Kafka: a record for each change row, its key as text, its value in some format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlmig.environment import redact
from sqlmig.errors import EngineError
from sqlmig.program.sink_options import BATCH, OP, SERVERS
from sqlmig.spark.batch_rows import DELETE
from sqlmig.spark.names import quoted
from sqlmig.spark.outgoing import Outgoing

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_DEFAULTS = {
    "kafka.max.block.ms": "20000",
    "kafka.delivery.timeout.ms": "60000",
    "kafka.request.timeout.ms": "20000",
}
"""Kafka's own would let a tick wait for minutes for a broker that is not there."""

_NO_ANSWER = re.compile(r"TimeoutException: (?:Topic \S+ not present in metadata|Expiring \d+)")


def write_kafka(rows: DataFrame, batch: Outgoing) -> None:
    """Write a batch and wait until the brokers have it all.

    A keyed sink's record has the key's columns as its key, and no value where the row is gone.
    An unkeyed sink's record has no key; its value begins with `_op` and `_batch`.

    Raises:
        EngineError: no broker answers, or there is no such topic.
    """
    from pyspark.sql import functions as F  # noqa: N812

    of_kafka = {n: text for n, text in batch.options.items() if n.startswith("kafka.")}
    of_values = {n: text for n, text in batch.options.items() if n not in of_kafka}
    names = [name for name in rows.columns if name != OP]
    if batch.key:
        gone = F.col(OP) == DELETE
        value = F.when(~gone, _value(names, batch.format, of_values))
        records = rows.select(_key(batch.key).alias("key"), value.alias("value"))
    else:
        numbered = rows.withColumn(BATCH, F.lit(batch.number).cast("long"))
        value = _value([OP, BATCH, *names], batch.format, of_values)
        records = numbered.select(F.lit(None).cast("string").alias("key"), value.alias("value"))
    with _answering(batch):
        (
            records.write.format("kafka")
            .options(**{**_DEFAULTS, **of_kafka})
            .option("topic", batch.place)
            .save()
        )


@contextmanager
def _answering(batch: Outgoing) -> Iterator[None]:
    """Tell a broker that does not answer, or knows no such topic, from other failures."""
    try:
        yield
    except Exception as error:
        if _NO_ANSWER.search(str(error)) is None:
            raise
        servers = redact(batch.options[SERVERS], batch.hidden)
        topic = redact(batch.place, batch.hidden)
        raise EngineError(
            f"sink `{batch.connector}`: no Kafka broker at {servers} answers for topic `{topic}`",
            location=batch.location,
            hint="start the broker and make the topic, or correct `kafka.bootstrap.servers`",
        ) from None


def _key(key: tuple[str, ...]) -> Expression:
    """One column as plain text, several as a JSON object."""
    from pyspark.sql import functions as F  # noqa: N812

    if len(key) == 1:
        return F.col(quoted(key[0])).cast("string")
    return F.to_json(F.struct(*(F.col(quoted(name)).alias(name) for name in key)))


def _value(names: list[str], kind: str, options: dict[str, str]) -> Expression:
    from pyspark.sql import functions as F  # noqa: N812

    row = F.struct(*(F.col(quoted(name)).alias(name) for name in names))
    if kind == "avro":
        from pyspark.sql.avro.functions import to_avro

        return to_avro(row)
    if kind == "csv":
        return F.to_csv(row, options)
    return F.to_json(row, {"ignorenullfields": "false", **options})
