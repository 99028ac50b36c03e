"""Checks a source's options without opening it. It knows names and values, no file and no broker.

An option that nobody reads would be a wish that nobody grants, so in a format whose options are
few and known (Kafka, Delta) an unknown one is a mistake. File formats have many, and a store's own
besides: there only what looks like one of sqlmig's is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from sqlmig.planning.steps import Blocker
from sqlmig.program.lexer import LexError, tokenize
from sqlmig.program.model import Column, Source, Table
from sqlmig.program.predicate import fields_beyond

FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "avro", "text", "xml"})
LINES = ("csv", "json")
"""Formats of files that have a record in each line."""
KAFKA_FORMATS = ("avro", "csv", "json")
METADATA: Mapping[str, tuple[str, ...]] = {
    "_key": ("string", "binary"),
    "_offset": ("bigint",),
    "_partition": ("int", "bigint"),
    "_timestamp": ("timestamp",),
    "_topic": ("string",),
}
"""What Kafka says of a record: the column that takes it up, and the types that it may have."""

_OWN = ("delete_when", "sequence_by")
_KAFKA = """
    assign avroSchema failOnDataLoss fetchOffset.numRetries fetchOffset.retryIntervalMs format
    groupIdPrefix kafkaConsumer.pollTimeoutMs maxOffsetsPerTrigger minPartitions on_data_loss
    startingOffsets startingOffsetsByTimestamp startingOffsetsByTimestampStrategy startingTimestamp
    subscribe subscribePattern
""".split()
_DELTA = """
    excludeRegex failOnDataLoss ignoreChanges ignoreDeletes maxBytesPerTrigger maxFilesPerTrigger
    on_data_loss path readChangeData readChangeFeed skipChangeCommits startingTimestamp
    startingVersion
""".split()
PARSER_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "avro": ("mode",),
    "csv": tuple(
        """
        charToEscapeQuoteEscaping comment dateFormat delimiter emptyValue encoding escape
        ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace locale maxCharsPerColumn maxColumns mode
        nanValue negativeInf nullValue positiveInf preferDate quote sep timeZone timestampFormat
        timestampNTZFormat unescapedQuoteHandling
        """.split()
    ),
    "json": tuple(
        """
        allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers
        allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars
        allowUnquotedFieldNames dateFormat encoding locale mode multiLine primitivesAsString
        timeZone timestampFormat timestampNTZFormat
        """.split()
    ),
}
"""Options of a format that go to what parses the value of a Kafka record, not to the reader."""
_SPARKS_OWN = frozenset(
    """
    kafka.auto.offset.reset kafka.enable.auto.commit kafka.interceptor.classes
    kafka.key.deserializer kafka.value.deserializer
    """.split()
)
_COUNTS = frozenset(
    """
    fetchoffset.numretries fetchoffset.retryintervalms kafkaconsumer.polltimeoutms
    maxfilespertrigger maxoffsetspertrigger minpartitions startingversion
    """.split()
)
_HOW = frozenset(
    """
    fetchoffset.numretries fetchoffset.retryintervalms groupidprefix kafkaconsumer.polltimeoutms
    maxbytespertrigger maxfilespertrigger maxoffsetspertrigger minpartitions on_data_loss
    """.split()
)
"""Options that say how a source is read, and not what: it goes on at its offsets with others."""
_WHAT_OF_KAFKA = frozenset({"kafka.bootstrap.servers", "kafka.isolation.level"})
_SECRET = "${env:"

Problem = tuple[str, str | None]
"""A message and a hint."""


def check_source(source: Source, table: Table) -> tuple[Blocker, ...]:
    """What is wrong with a source's options, as far as that can be told without opening it.

    Args:
        table: what the source feeds.
    """
    options = {key.lower(): value for key, value in source.options}
    return tuple(
        Blocker(f"source `{source.connector}`: {message}", source.location, hint)
        for message, hint in problems(source, table, options)
    )


def problems(source: Source, table: Table, options: Mapping[str, str]) -> Iterator[Problem]:
    """The same, for options whose names are in lower case and whose secrets may be filled in."""
    kind = source.format.lower()
    yield from _unknown_options(kind, [key for key, _ in source.options], options)
    if kind == "kafka":
        yield from _kafka(table, options)
    elif kind == "delta":
        yield from _delta(table, options)
    elif kind in FILE_FORMATS:
        yield from _files(options)
    yield from _losses(options)
    if source.retain_raw is not None:
        yield from _raw(kind, options)
    yield from _keyed(kind, table, options)
    for key, _ in source.options:
        value = options[key.lower()]
        is_word = key.lower() == "startingversion" and value == "latest"
        if key.lower() in _COUNTS and not (value.isdigit() or is_word or _SECRET in value):
            yield f"option `{key}` is '{value}', and must be a whole number", None


def _unknown_options(kind: str, keys: list[str], options: Mapping[str, str]) -> Iterator[Problem]:
    if kind == "kafka":
        known = [*_OWN, *_KAFKA, *PARSER_OPTIONS.get(options.get("format", "").lower(), ())]
        if options.get("format", "").lower() not in PARSER_OPTIONS:
            known += [name for names in PARSER_OPTIONS.values() for name in names]
    elif kind == "delta":
        known = [*_OWN, *_DELTA]
    else:
        known = list(_OWN)
    is_closed = kind in ("kafka", "delta")
    for key in keys:
        folded = key.lower()
        if folded in {name.lower() for name in known}:
            continue
        if kind == "kafka" and folded.startswith("kafka."):
            if folded in _SPARKS_OWN:
                yield f"option `{key}` can't be given: Spark sets it itself", "leave it out"
            elif folded != "kafka.bootstrap.servers" and get_close_matches(
                folded, ["kafka.bootstrap.servers"], cutoff=0.9
            ):
                yield f"there is no option `{key}`", "did you mean `kafka.bootstrap.servers`?"
            continue
        close = get_close_matches(
            folded, [name.lower() for name in known], n=1, cutoff=0.6 if is_closed else 0.8
        )
        if close:
            [name] = [name for name in known if name.lower() == close[0]][:1]
            yield f"there is no option `{key}`", f"did you mean `{name}`?"
        elif is_closed:
            hint = "Kafka's own begin with `kafka.`; " if kind == "kafka" else ""
            yield f"there is no option `{key}`", f"{hint}known are {', '.join(sorted(known))}"


def _kafka(table: Table, options: Mapping[str, str]) -> Iterator[Problem]:
    if not options.get("kafka.bootstrap.servers"):
        yield (
            "it has no `kafka.bootstrap.servers`",
            "OPTIONS ('kafka.bootstrap.servers' 'host:9092', ...)",
        )
    ways = [way for way in ("subscribe", "subscribepattern", "assign") if options.get(way)]
    if len(ways) != 1:
        said = "no `subscribe`" if not ways else " and ".join(f"`{way}`" for way in ways)
        yield f"it has {said}", "name the topics one way: subscribe 'topic'"
    form = options.get("format", "").lower()
    if not form:
        yield "it has no `format`", "say what a record's value is: format 'json'"
    elif form not in KAFKA_FORMATS:
        yield f"there is no format '{form}' for Kafka", f"known are {', '.join(KAFKA_FORMATS)}"
    if form == "avro" and not options.get("avroschema"):
        yield "it has no `avroSchema`", "give the schema that the records were written with"
    for column in table.columns:
        types = METADATA.get(column.name.lower(), ())
        if types and column.type not in types:
            yield (
                f"column `{column.name}` takes up what Kafka says of a record, "
                f"and is of type {column.type}",
                f"declare it as {' or '.join(types)}",
            )


def _delta(table: Table, options: Mapping[str, str]) -> Iterator[Problem]:
    if not options.get("path"):
        yield "it has no `path`", "OPTIONS (path 'lake/orders')"
    if reads_changes(options) and not table.primary_key:
        yield (
            f"`readChangeFeed` needs a key, and `{table.name}` has none: "
            "changes would become rows of their own",
            "give the table a PRIMARY KEY, or leave `readChangeFeed` out",
        )
    if table.primary_key and not reads_changes(options) and "sequence_by" not in options:
        yield (
            f"`{table.name}` has a key, and a Delta table does not say which of two rows with one "
            "key came later",
            "sequence_by 'column', or readChangeFeed true",
        )
    if _is_true(options, "ignorechanges"):
        yield (
            "`ignoreChanges` would bring rows twice",
            "`readChangeFeed true` follows changes, `skipChangeCommits true` leaves them out",
        )


def _files(options: Mapping[str, str]) -> Iterator[Problem]:
    if not options.get("path"):
        yield "it has no `path`", "OPTIONS (path 'data/grades')"


def _raw(kind: str, options: Mapping[str, str]) -> Iterator[Problem]:
    """What RETAIN RAW can't be said of: where a record is no line, and none of Kafka's."""
    if kind not in ("kafka", *LINES):
        yield (
            f"RETAIN RAW is not for {kind}: its records are no lines of text",
            "it is for json, csv and kafka; leave it out",
        )
        return
    if kind == "kafka":
        return
    for name in ("multiline", "header"):
        if _is_true(options, name):
            why = "a record is one line" if name == "multiline" else "each line is a record"
            yield f"RETAIN RAW and `{name}` don't go together: {why}", "leave out one of them"
    for name in ("charset", "comment", "encoding", "linesep", "wholetext"):
        if name in options:
            yield (
                f"RETAIN RAW and `{name}` don't go together: lines are read as they are, in UTF-8",
                "leave out one of them",
            )


def raw_options(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options, by names in lower case, that say what a raw record means."""
    form = options.get("format", "").lower() if kind == "kafka" else kind
    names = {name.lower() for name in PARSER_OPTIONS[form]}
    names |= {"avroschema", "delete_when", "format", "sequence_by"}
    return {key: value for key, value in options.items() if key in names}


def _losses(options: Mapping[str, str]) -> Iterator[Problem]:
    drops = options.get("mode", "").upper() == "DROPMALFORMED"
    if drops or any(_is_true(options, k) for k in ("ignorecorruptfiles", "ignoremissingfiles")):
        yield (
            "it would drop records silently",
            "leave out `mode` and `ignoreCorruptFiles`: bad records are kept aside",
        )
    if options.get("failondataloss", "").lower() == "false":
        yield (
            "`failOnDataLoss false` would lose records silently",
            "write on_data_loss 'skip' if records that are gone shall be passed over",
        )
    wanted = options.get("on_data_loss", "fail")
    if wanted not in ("fail", "skip") and _SECRET not in wanted:
        yield f"`on_data_loss` is '{wanted}'", "it is 'fail' (the default) or 'skip'"


def _keyed(kind: str, table: Table, options: Mapping[str, str]) -> Iterator[Problem]:
    for name in _OWN:
        if name in options and not table.primary_key:
            yield (
                f"`{name}` needs a key, and `{table.name}` has none",
                f"give `{table.name}` a PRIMARY KEY, or leave `{name}` out",
            )
    if "sequence_by" in options:
        yield from _sequence(table, options["sequence_by"])
    if "delete_when" in options:
        yield from _predicate(kind, table, options["delete_when"])


def _sequence(table: Table, name: str) -> Iterator[Problem]:
    column = column_named(table, name)
    if column is None:
        names = [c.name for c in table.columns]
        close = get_close_matches(name.lower(), [n.lower() for n in names], n=1)
        found = next((n for n in names if close and n.lower() == close[0]), None)
        yield (
            f"`sequence_by` is '{name}', which is not a column of `{table.name}`",
            f"did you mean `{found}`?" if found else f"columns are {', '.join(names)}",
        )
    elif column.type.startswith(("map<", "variant")):
        yield f"`sequence_by`: values of type {column.type} have no order", None


def _predicate(kind: str, table: Table, predicate: str) -> Iterator[Problem]:
    usage = "write a condition over the record: delete_when 'op = ''d'''"
    if _SECRET in predicate:
        yield "`delete_when` can't hold a secret", usage
        return
    try:
        tokens = tokenize(predicate)
        beyond = fields_beyond(predicate, [*(c.name for c in table.columns), *metadata_of(kind)])
    except LexError as error:
        yield f"`delete_when`: {error.message}", error.hint
        return
    if not tokens or any(token.text == ";" for token in tokens):
        yield "`delete_when` is not a condition", usage
    if beyond and kind in ("parquet", "orc", "text"):
        names = ", ".join(f"`{name}`" for name, _ in beyond)
        yield (
            f"`delete_when` names {names}, and `{table.name}` has no such column",
            f"of {kind} files only the table's columns are read: add it to the table",
        )


def reads_the_same(before: Source, after: Source) -> bool:
    """Whether two definitions read the same records in the same way, so that offsets stay right."""
    return (before.table, before.format) == (after.table, after.format) and (
        _what(before) == _what(after)
    )


def _what(source: Source) -> dict[str, str]:
    options = {key.lower(): value for key, value in source.options}
    return {
        key: value
        for key, value in options.items()
        if key not in _HOW and (not key.startswith("kafka.") or key in _WHAT_OF_KAFKA)
    }


def metadata_of(kind: str) -> Iterable[str]:
    """The names that a source of this format gives beside the record's own fields."""
    return METADATA if kind == "kafka" else ()


def column_named(table: Table, name: str) -> Column | None:
    """The column of that name, without regard to letter case."""
    return next((c for c in table.columns if c.name.lower() == name.lower()), None)


def deletion_columns(source: Source, table: Table) -> frozenset[str]:
    """The columns by which a source remembers what it has deleted, in lower case; () for none."""
    options = {key.lower(): value for key, value in source.options}
    may_delete = "delete_when" in options or source.format.lower() == "kafka"
    if "sequence_by" not in options or not (may_delete or reads_changes(options)):
        return frozenset()
    return frozenset({options["sequence_by"].lower(), *map(str.lower, table.primary_key)})


def reads_changes(options: Mapping[str, str]) -> bool:
    """Whether a Delta source follows the change feed."""
    return _is_true(options, "readchangefeed") or _is_true(options, "readchangedata")


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
