"""What connectors need beyond Spark and Delta: Maven coordinates. It fetches nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlmig.program.model import Program, Sink, Source


@dataclass(frozen=True)
class Package:
    """Jars that give Spark a format.

    Args:
        name: the format.
        coordinates: `group:artifact:version`, fetched with what they depend on; the first one is
            what a user may give in another version.
        alone: fetched without what they depend on.
        excludes: `group:artifact` that are left out, `*` for any.
    """

    name: str
    coordinates: tuple[str, ...]
    alone: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @property
    def artifact(self) -> str:
        """`group:artifact` of the first."""
        return _artifact(self.coordinates[0])


# Not every Maven mirror has each module of Spark 4.2: the token provider (Kerberos's delegation
# tokens) and avro are taken in the latest release that is everywhere; tests run them on 4.2.
KAFKA = Package(
    "kafka",
    ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",),
    alone=("org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",),
    excludes=("org.apache.spark:spark-token-provider-kafka-0-10_2.13",),
)
AVRO = Package("avro", ("org.apache.spark:spark-avro_2.13:4.1.1",))


def needed_packages(programs: Iterable[Program]) -> tuple[Package, ...]:
    """What the connectors of `programs` need, sorted by name; nothing for plain files."""
    connectors: list[Source | Sink] = []
    for program in programs:
        connectors += [*program.sources.values(), *program.sinks.values()]
    needed = {package for one in connectors for package in packages_of(one)}
    return tuple(sorted(needed, key=lambda package: package.name))


def packages_of(connector: Source | Sink) -> tuple[Package, ...]:
    """What one connector needs, sorted by name."""
    formats = {connector.format.lower()}
    formats |= {value.lower() for key, value in connector.options if key.lower() == "format"}
    return tuple(package for package in (AVRO, KAFKA) if package.name in formats)


def missing_packages(needed: Iterable[Package], given: Iterable[str]) -> tuple[Package, ...]:
    """Those of `needed` of which the coordinates `given` name no version: the user's goes first."""
    known = {_artifact(coordinates) for coordinates in given}
    return tuple(package for package in needed if package.artifact not in known)


def _artifact(coordinates: str) -> str:
    return ":".join(coordinates.split(":")[:2])
