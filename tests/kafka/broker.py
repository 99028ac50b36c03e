"""The broker of the tests: that of the example, with which more can go wrong."""

from __future__ import annotations

from collections.abc import Mapping

from example_project.kafka import broker
from example_project.kafka.broker import Message

__all__ = ["Broker", "Message"]


class Broker(broker.Broker):
    """A broker whose topics grow, lose records and vanish.

    Args:
        folder: where its data and its log lie.
    """

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records, and return when it is gone."""
        self._admin.deleteTopics([name]).all().get()
        self._wait(lambda: name not in self.topics(), f"the end of topic {name}")

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have `total` partitions, more than it has."""
        admin = self._gateway.jvm.org.apache.kafka.clients.admin
        growth = admin.NewPartitions.increaseTo(total)
        self._admin.createPartitions({name: growth}).all().get()
        self._wait(lambda: len(self._partitions(name)) == total, f"{total} partitions of {name}")

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Delete what lies before an offset of each partition, as retention does."""
        jvm = self._gateway.jvm
        marks = {}
        for partition, offset in before.items():
            # by reflection: py4j finds no static method that has a namesake of an instance
            kinds = self._gateway.new_array(jvm.Class, 1)
            values = self._gateway.new_array(jvm.Object, 1)
            kinds[0], values[0] = jvm.Long.TYPE, offset
            kind = jvm.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
            mark = kind.getMethod("beforeOffset", kinds).invoke(None, values)
            marks[self._partition(name, partition)] = mark
        self._admin.deleteRecords(marks).all().get()
