"""Two sets of rows compared for a reader: how many came, went and changed, with samples.

It knows data frames, and nothing of where they come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlmig.planning.preview import Difference, Samples
from sqlmig.spark.names import quoted
from sqlmig.spark.query import collect

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_BEFORE = "__sqlmig_before"
_AFTER = "__sqlmig_after"
_COUNT = "__sqlmig_count"
_LONGEST_KEY = 4
"""How many of the first columns may tell rows apart that have no key."""


def compare(
    name: str,
    kind: str,
    before: DataFrame | None,
    after: DataFrame | None,
    key: Sequence[str],
    *,
    samples: int,
) -> Difference:
    """What differs between `before` and `after`; None stands for no rows and no columns.

    Rows are told apart by `key`, or, without one, by the first columns that do so on both sides.
    Where none do, equal rows cancel out one by one (EXCEPT ALL, both ways).

    Args:
        key: columns; ignored where rows repeat it.
        samples: rows of each kind that are shown.
    """
    blank = Difference(name, kind)
    if before is None and after is None:
        return blank
    if before is None or after is None:
        only = after if after is not None else before
        assert only is not None
        count = only.count()
        shown = _rows(only.limit(0) if not count else _sorted(only, only.columns), samples)
        if before is None:
            return replace(blank, before=0, after=count, added=count, samples=Samples(added=shown))
        return replace(blank, before=count, after=0, removed=count, samples=Samples(removed=shown))
    columns = _common(before, after)
    apart, count_before, count_after = _key(before, after, list(columns), key)
    found = replace(
        blank,
        key=apart,
        before=count_before,
        after=count_after,
        new_columns=tuple(c for c in after.columns if c.lower() not in columns),
        lost_columns=tuple(c for c in before.columns if c.lower() not in columns),
    )
    if not columns:
        return replace(found, added=count_after, removed=count_before)
    rows = _by_key(before, after, columns, apart) if apart else _bags(before, after, columns)
    rows = rows.persist()
    try:
        return _told(found, rows, columns, samples)
    finally:
        rows.unpersist()


Common = Mapping[str, tuple[str, str]]
"""Column in lower case -> its name before and after, in the order of after."""


def _common(before: DataFrame, after: DataFrame) -> Common:
    known = {column.lower(): column for column in before.columns}
    return {c.lower(): (known[c.lower()], c) for c in after.columns if c.lower() in known}


def _key(
    before: DataFrame, after: DataFrame, columns: Sequence[str], given: Sequence[str]
) -> tuple[tuple[str, ...], int, int]:
    """The columns that tell rows apart on both sides, and how many rows each has."""
    wanted = [name.lower() for name in given]
    tries = [wanted] if wanted and set(wanted) <= set(columns) else []
    if not wanted:
        tries = [list(columns[:n]) for n in range(1, min(_LONGEST_KEY, len(columns) - 1) + 1)]
    sides = [_distinct(frame, tries) for frame in (before, after)]
    for number, names in enumerate(tries, start=1):
        if all(counts[number] == counts[0] for counts in sides):
            spelled = {column.lower(): column for column in after.columns}
            return tuple(spelled[name] for name in names), sides[0][0], sides[1][0]
    return (), sides[0][0], sides[1][0]


def _distinct(frame: DataFrame, tries: Sequence[Sequence[str]]) -> list[int]:
    """The number of rows, then that of different values for each of `tries`."""
    from pyspark.sql import functions as F  # noqa: N812

    kinds = _kinds(frame)
    counts = [
        F.count_distinct(
            F.struct(*(_value(F.col(quoted(n)), kinds[n]).alias(f"c{i}") for i, n in enumerate(t)))
        ).alias(f"n{number}")
        for number, t in enumerate(tries)
    ]
    return list(frame.agg(F.count(F.lit(1)).alias("n"), *counts).collect()[0])


def _by_key(before: DataFrame, after: DataFrame, columns: Common, key: Sequence[str]) -> DataFrame:
    """The rows that differ: both structures, and 1."""
    from pyspark.sql import functions as F  # noqa: N812

    old = before.select(F.struct(*(F.col(quoted(b)) for b, _ in columns.values())).alias(_BEFORE))
    new = after.select(F.struct(*(F.col(quoted(a)) for _, a in columns.values())).alias(_AFTER))
    kinds, were = _kinds(after), _kinds(before)

    def equal(name: str) -> Column:
        b, a = columns[name]
        was, now = F.col(f"{_BEFORE}.{quoted(b)}"), F.col(f"{_AFTER}.{quoted(a)}")
        one, other = _fitted(was, were[name], kinds[name]), _fitted(now, kinds[name], were[name])
        return one.eqNullSafe(other)

    on = [equal(name.lower()) for name in key]
    is_same = F.lit(True)
    for name in columns:
        is_same = is_same & equal(name)
    condition = on[0]
    for part in on[1:]:
        condition = condition & part
    joined = old.join(new, condition, "full_outer")
    both = F.col(_BEFORE).isNotNull() & F.col(_AFTER).isNotNull()
    return joined.where(~both | ~is_same).withColumn(_COUNT, F.lit(1).cast("long"))


def _bags(before: DataFrame, after: DataFrame, columns: Common) -> DataFrame:
    """The rows that one side has more often: its structure, and how much more often."""
    from pyspark.sql import functions as F  # noqa: N812

    kinds, were = _kinds(after), _kinds(before)
    texts = [f"k{number}" for number, _ in enumerate(columns)]
    sides = []
    for frame, is_after in ((before, False), (after, True)):
        pairs = [(n, a if is_after else b) for n, (b, a) in columns.items()]
        own, other = (kinds, were) if is_after else (were, kinds)
        row = F.struct(*(F.col(quoted(name)) for _, name in pairs))
        blank = F.lit(None)
        keys = [
            _fitted(F.col(quoted(name)), own[n], other[n]).alias(text)
            for (n, name), text in zip(pairs, texts, strict=True)
        ]
        sides.append(
            frame.select(
                *keys,
                (blank if is_after else row).alias(_BEFORE),
                (row if is_after else blank).alias(_AFTER),
                F.lit(1 if is_after else -1).cast("long").alias(_COUNT),
            )
        )
    old, new = sides
    shape_old, shape_new = old.schema[_BEFORE].dataType, new.schema[_AFTER].dataType
    old = old.withColumn(_AFTER, F.lit(None).cast(shape_new))
    new = new.withColumn(_BEFORE, F.lit(None).cast(shape_old)).select(*old.columns)
    grouped = old.union(new).groupBy(*texts)
    net = grouped.agg(
        F.any_value(F.col(_BEFORE), True).alias(_BEFORE),
        F.any_value(F.col(_AFTER), True).alias(_AFTER),
        F.sum(_COUNT).alias(_COUNT),
    ).where(F.col(_COUNT) != 0)
    came = F.col(_COUNT) > 0
    return net.select(
        F.when(~came, F.col(_BEFORE)).alias(_BEFORE),
        F.when(came, F.col(_AFTER)).alias(_AFTER),
        F.abs(F.col(_COUNT)).alias(_COUNT),
    )


def _told(found: Difference, rows: DataFrame, columns: Common, samples: int) -> Difference:
    from pyspark.sql import functions as F  # noqa: N812

    came = F.col(_BEFORE).isNull()
    went = F.col(_AFTER).isNull()
    stayed = ~came & ~went
    counts = rows.agg(
        *(F.coalesce(F.sum(F.when(c, F.col(_COUNT))), F.lit(0)) for c in (came, went, stayed))
    ).collect()[0]
    added, removed, changed = map(int, counts)
    olds, news = zip(*columns.values(), strict=True)

    def side(where: Column, struct: str, names: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        frame = rows.where(where).select(f"{struct}.*")
        return _rows(_sorted(frame, names), samples)

    return replace(
        found,
        added=added,
        removed=removed,
        changed=changed,
        samples=Samples(
            side(came, _AFTER, news) if added and samples else (),
            side(went, _BEFORE, olds) if removed and samples else (),
            _pairs(rows.where(stayed), found.key, olds, news, samples)
            if changed and samples
            else (),
        ),
    )


def _pairs(
    rows: DataFrame, key: Sequence[str], olds: Sequence[str], news: Sequence[str], samples: int
) -> tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]:
    from pyspark.sql import functions as F  # noqa: N812

    was = [F.col(f"{_BEFORE}.{quoted(n)}").alias(f"b{i}") for i, n in enumerate(olds)]
    now = [F.col(f"{_AFTER}.{quoted(n)}").alias(f"a{i}") for i, n in enumerate(news)]
    spelled = {name.lower(): f"a{number}" for number, name in enumerate(news)}
    frame = _sorted(rows.select(*was, *now), [spelled[name.lower()] for name in key])
    return tuple(
        (
            {after: row[f"b{i}"] for i, after in enumerate(news)},
            {after: row[f"a{i}"] for i, after in enumerate(news)},
        )
        for row in _rows(frame, samples)
    )


def _rows(frame: DataFrame, count: int) -> tuple[Mapping[str, Any], ...]:
    return tuple(collect(frame.limit(count))[1]) if count else ()


def _sorted(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    kinds = _kinds(frame)
    return frame.orderBy(*(_value(F.col(quoted(name)), kinds[name.lower()]) for name in names))


def _kinds(frame: DataFrame) -> Mapping[str, DataType]:
    return {field.name.lower(): field.dataType for field in frame.schema.fields}


def _fitted(value: Column, kind: DataType, other: DataType) -> Column:
    """A value that can be compared with one of type `other`."""
    from pyspark.sql.types import NumericType

    if kind == other:
        return _value(value, kind)
    if isinstance(kind, NumericType) and isinstance(other, NumericType):
        return value.cast("double")
    return value.cast("string") if _is_plain(kind) else _json(value)


def _value(value: Column, kind: DataType) -> Column:
    """A value that can be compared, grouped and sorted by."""
    return value if _is_plain(kind) else _json(value)


def _json(value: Column) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.to_json(F.struct(value.alias("v")))


def _is_plain(kind: DataType) -> bool:
    from pyspark.sql.types import AtomicType

    return isinstance(kind, AtomicType) and kind.typeName() != "variant"
