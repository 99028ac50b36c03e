"""The broker of the tests: what other tests take for granted of it."""

from __future__ import annotations

from tests.kafka.broker import Broker


def test_a_broker_keeps_what_it_was_sent_when_it_is_killed(kafka: Broker) -> None:
    # given
    kafka.create_topic("kept", partitions=2)
    kafka.produce("kept", [("a", "1"), (None, "2", {"h": b"\x00x"})], partition=1)
    kafka.produce("kept", [("b", None)], partition=0, timestamp=1_000)

    # when
    kafka.kill()
    kafka.start()
    kafka.add_partitions("kept", 3)
    kafka.produce("kept", [("c", b"\xff")], partition=2)

    # then
    found = kafka.consume("kept")
    assert [(m.partition, m.offset, m.key, m.value) for m in found] == [
        (0, 0, b"b", None),
        (1, 0, b"a", b"1"),
        (1, 1, None, b"2"),
        (2, 0, b"c", b"\xff"),
    ]
    assert found[0].timestamp == 1_000
    assert found[2].headers == {"h": b"\x00x"}

    # when: retention takes the oldest, and a topic is made anew
    kafka.delete_records("kept", {1: 1})
    kafka.create_topic("other")
    kafka.produce("other", [("k", "old"), ("k", "older")])
    kafka.delete_topic("other")
    kafka.create_topic("other")
    kafka.produce("other", [("k", "new")])

    # then
    assert [(m.partition, m.offset) for m in kafka.consume("kept")] == [(0, 0), (1, 1), (2, 0)]
    assert [(m.offset, m.value) for m in kafka.consume("other")] == [(0, b"new")]
    assert {"kept", "other"} <= set(kafka.topics())
