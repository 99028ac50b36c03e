"""A real Kafka to try things on: one process, broker and controller at once (KRaft), on loopback.

It knows Kafka's own Java classes, through py4j, which comes with pyspark: so topics, records and
the server itself are driven from here, with no other client and no second JVM.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmig.errors import EngineError
from sqlmig.spark.fetching import fetch
from sqlmig.spark.java import check_java, find_java
from sqlmig.spark.packages import Package

if TYPE_CHECKING:
    from typing_extensions import Self

KAFKA = Package("kafka-server", ("org.apache.kafka:kafka_2.13:4.1.0",))
# A JVM that lives minutes and sees a handful of records.
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_BYTES = "org.apache.kafka.common.serialization.ByteArray"

Bytes = str | bytes | None
"""Text is sent as UTF-8; None is Kafka's null."""


@dataclass(frozen=True)
class Message:
    """A record as it lies in a topic. `timestamp` counts milliseconds since 1970."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes] = field(default_factory=dict)


class Broker:
    """A broker whose data and port stay when it is killed and started again.

    It dies with the process that started it, however that one ends.

    Args:
        folder: where its data and its log lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self._controller_port = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._gateway: Any = None
        self._clients: dict[str, Any] = {}
        self._server: Any = None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, what a client's `bootstrap.servers` wants."""
        return f"127.0.0.1:{self.port}"

    # the process

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the broker, and return when it answers; the first start formats its folder.

        Raises:
            EngineError: there is no Java, Kafka's jars can't be fetched, or it does not start.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        check_java()
        java, jars = find_java(), fetch(KAFKA, shipped=())
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(java),
                    *SMALL,
                    "-cp",
                    os.pathsep.join(map(str, (_spark_jar("py4j-"), *jars))),
                    "py4j.GatewayServer",
                    "--die-on-broken-pipe",  # it ends with us
                    "--enable-auth",
                    "0",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: we end it, after its clients
            )
        try:
            self._open_gateway()
            self._start_server()
        except Exception as error:
            self.kill()
            said = (self.folder / "broker.log").read_text("utf-8", "replace").splitlines()[-20:]
            raise EngineError("\n".join(("Kafka does not start:", *said))) from error
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash does; one that has ended is left alone."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        if self._gateway is not None:
            self._gateway.close()
        self._process = self._gateway = self._server = None
        self._clients.clear()

    def _open_gateway(self) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        assert self._process is not None
        assert self._process.stdout is not None
        port = int(self._process.stdout.readline())
        token = self._process.stdout.readline().decode().strip()
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)

    def _start_server(self) -> None:
        jvm, data = self._gateway.jvm, self.folder / "data"
        lines = [f"{name}={value}" for name, value in sorted(self._settings(data).items())]
        file = self.folder / "server.properties"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if not (data / "meta.properties").exists():
            cluster = jvm.org.apache.kafka.common.Uuid.randomUuid().toString()
            words = self._texts("format", "-t", cluster, "-c", str(file))
            assert jvm.kafka.tools.StorageTool.execute(words, jvm.System.err) == 0
        config = jvm.kafka.server.KafkaConfig.fromProps(self._properties(self._settings(data)))
        system_time = jvm.org.apache.kafka.common.utils.Time.SYSTEM
        self._server = jvm.kafka.server.KafkaRaftServer(config, system_time)
        self._server.startup()

    def _settings(self, data: Path) -> dict[str, str]:
        controller = f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            "log.dirs": str(data),
            "auto.create.topics.enable": "false",
            # so long the controller waits for a broker that was killed, before it is let in again
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "3000",
            "file.delete.delay.ms": "100",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "2097152",
            "num.io.threads": "2",
            "num.network.threads": "1",
            "num.replica.fetchers": "1",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
        }

    # topics

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic, and return when it is known."""
        jvm = self._gateway.jvm
        topic = jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, 1)
        self._admin.createTopics([topic]).all().get()
        self._wait(lambda: len(self._partitions(name)) == partitions, f"topic {name}")

    def topics(self) -> list[str]:
        """The names of all topics, sorted; Kafka's own are left out."""
        return sorted(self._admin.listTopics().names().get())

    # records

    def produce(
        self,
        topic: str,
        records: Sequence[tuple[Bytes, Bytes] | tuple[Bytes, Bytes, Mapping[str, Bytes]]],
        *,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Append records (key, value, and headers if need be), and return when all are stored.

        Args:
            partition: where they go; by default where their key's hash leads.
            timestamp: milliseconds since 1970; by default now.
        """
        jvm = self._gateway.jvm
        sent: Any = None
        for key, value, *more in records:
            headers = [
                jvm.org.apache.kafka.common.header.internals.RecordHeader(name, _encoded(text))
                for name, text in (more[0] if more else {}).items()
            ]
            record = jvm.org.apache.kafka.clients.producer.ProducerRecord(
                topic,
                partition,
                timestamp,
                _encoded(key),
                _encoded(value),
                headers or None,
            )
            sent = self._producer.send(record)
        self._producer.flush()
        if sent is not None:
            sent.get()  # the producer keeps order: where one failed, so did the last

    def consume(self, topic: str) -> list[Message]:
        """All records that the topic has now, by partition and offset."""
        jvm = self._gateway.jvm
        with self._consumer() as consumer:
            partitions = self._partitions(topic)
            consumer.assign(partitions)
            consumer.seekToBeginning(partitions)
            ends = {p: consumer.endOffsets([p])[p] for p in partitions}
            found: list[Message] = []
            wait = jvm.java.time.Duration.ofMillis(200)
            while any(consumer.position(p) < ends[p] for p in partitions):
                records = consumer.poll(wait)
                for partition in records.partitions():
                    found += [_message(record) for record in records.records(partition)]
        return sorted(found, key=lambda message: (message.partition, message.offset))

    # Java's side

    @property
    def _admin(self) -> Any:
        admin = self._gateway.jvm.org.apache.kafka.clients.admin
        return self._client("admin", admin.Admin.create, {"request.timeout.ms": "10000"})

    @property
    def _producer(self) -> Any:
        serializer = f"{_BYTES}Serializer"
        settings = {
            "key.serializer": serializer,
            "value.serializer": serializer,
            "buffer.memory": "8388608",
            "delivery.timeout.ms": "20000",
            "request.timeout.ms": "10000",
            "linger.ms": "5",
        }
        producers = self._gateway.jvm.org.apache.kafka.clients.producer
        return self._client("producer", producers.KafkaProducer, settings)

    def _client(self, name: str, make: Any, settings: Mapping[str, str]) -> Any:
        if name not in self._clients:
            settings = {"bootstrap.servers": self.bootstrap_servers, **settings}
            self._clients[name] = make(self._properties(settings))
        return self._clients[name]

    @contextmanager
    def _consumer(self) -> Iterator[Any]:
        deserializer = f"{_BYTES}Deserializer"
        settings = {
            "bootstrap.servers": self.bootstrap_servers,
            "key.deserializer": deserializer,
            "value.deserializer": deserializer,
            "enable.auto.commit": "false",
        }
        consumers = self._gateway.jvm.org.apache.kafka.clients.consumer
        consumer = consumers.KafkaConsumer(self._properties(settings))
        try:
            yield consumer
        finally:
            consumer.close()

    def _partitions(self, topic: str) -> list[Any]:
        try:
            topics = self._admin.describeTopics([topic]).allTopicNames().get()
        except Exception as error:
            if "UnknownTopicOrPartition" in str(error):
                return []  # it is not yet known everywhere
            raise
        return [self._partition(topic, p.partition()) for p in topics[topic].partitions()]

    def _partition(self, topic: str, number: int) -> Any:
        return self._gateway.jvm.org.apache.kafka.common.TopicPartition(topic, number)

    def _properties(self, settings: Mapping[str, str]) -> Any:
        properties = self._gateway.jvm.java.util.Properties()
        for name, value in settings.items():
            properties.setProperty(name, value)
        return properties

    def _texts(self, *words: str) -> Any:
        array = self._gateway.new_array(self._gateway.jvm.String, len(words))
        for number, word in enumerate(words):
            array[number] = word
        return array

    def _wait(self, is_done: Any, what: str, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > end:
                raise EngineError(f"waited {seconds:g} seconds for {what}")
            time.sleep(0.05)


def _spark_jar(prefix: str) -> Path:
    import pyspark

    [jar] = (Path(pyspark.__file__).parent / "jars").glob(f"{prefix}*.jar")
    return jar


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _encoded(text: Bytes) -> bytearray | None:
    """What py4j hands over as a `byte[]`."""
    if text is None:
        return None
    return bytearray(text.encode() if isinstance(text, str) else text)


def _message(record: Any) -> Message:
    return Message(
        record.partition(),
        record.offset(),
        record.timestamp(),
        record.key(),
        record.value(),
        {header.key(): header.value() for header in record.headers().toArray()},
    )
