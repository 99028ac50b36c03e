"""Statements that a program can't hold, and what to write instead. It knows words, and reads no
statement."""

from __future__ import annotations

from sqlmig.program.cursor import Cursor, FormError

FORMS = (
    "a program has CREATE TABLE, CREATE SOURCE, CREATE VIEW, CREATE MATERIALIZED VIEW, "
    "CREATE STREAMING TABLE, CREATE FUNCTION and CREATE SINK"
)
STATEMENTS = ("TABLE", "VIEW", "MATERIALIZED", "STREAMING", "SOURCE", "SINK", "FUNCTION")
"""What may follow CREATE."""

_INSTEAD = {
    "INSERT": 'load rows with `sqlmig exec "INSERT INTO ..."`, or declare a CREATE SOURCE',
    "DROP": "delete the CREATE statement; sqlmig finds out what that removes",
    "ALTER": "edit the CREATE statement; sqlmig finds out what that changes",
    "UPDATE": "change rows with `sqlmig exec`, or with `op.execute` in a revision's hook",
    "DELETE": "change rows with `sqlmig exec`, or with `op.execute` in a revision's hook",
    "MERGE": "change rows with `sqlmig exec`, or with `op.execute` in a revision's hook",
    "TRUNCATE": 'delete rows with `sqlmig exec "DELETE FROM ..."`',
    "COPY": "load files with a CREATE SOURCE",
    "LOAD": "load files with a CREATE SOURCE",
    "SELECT": "give the query a name: `CREATE MATERIALIZED VIEW name AS SELECT ...`",
    "WITH": "give the query a name: `CREATE MATERIALIZED VIEW name AS WITH ...`",
    "FROM": "give the query a name: `CREATE MATERIALIZED VIEW name AS FROM ...`",
    "VALUES": "give the query a name: `CREATE VIEW name AS VALUES ...`",
    "SET": "put Spark settings into the target's `spark.conf` in sqlmig.yml",
    "USE": "catalog and schema belong to the target in sqlmig.yml",
    "COMMENT": "write COMMENT 'text' into the CREATE statement",
    "CACHE": "write CREATE MATERIALIZED VIEW: it is stored",
    "REFRESH": "sqlmig refreshes materialized views by itself, with `sqlmig run`",
}

_CREATE_INSTEAD = {
    "OR": ("CREATE OR REPLACE", "write CREATE without OR REPLACE; sqlmig finds out what changed"),
    "TEMPORARY": ("CREATE TEMPORARY", "write `CREATE VIEW name AS query`: it isn't stored"),
    "TEMP": ("CREATE TEMP", "write `CREATE VIEW name AS query`: it isn't stored"),
    "GLOBAL": ("CREATE GLOBAL", "write `CREATE VIEW name AS query`: it isn't stored"),
    "EXTERNAL": ("CREATE EXTERNAL TABLE", "write CREATE TABLE, and a CREATE SOURCE that feeds it"),
    "LIVE": ("CREATE LIVE TABLE", "write CREATE MATERIALIZED VIEW"),
    "INCREMENTAL": ("CREATE INCREMENTAL", "write CREATE MATERIALIZED VIEW"),
    "FLOW": ("CREATE FLOW", "put the query into CREATE STREAMING TABLE ... AS"),
    "DATABASE": ("CREATE DATABASE", "catalog and schema belong to the target in sqlmig.yml"),
    "SCHEMA": ("CREATE SCHEMA", "catalog and schema belong to the target in sqlmig.yml"),
    "INDEX": ("CREATE INDEX", FORMS),
}


def refuse(cursor: Cursor) -> None:
    """Raises a FormError when the statement at the cursor is none that a program can hold."""
    first = cursor.peek()
    assert first is not None
    word = first.word
    if word != "CREATE":
        if word in _INSTEAD:
            raise FormError(f"{word} is not part of a program", first.start, _INSTEAD[word])
        raise FormError(f"a statement can't begin with `{first.text}`", first.start, FORMS)
    second = cursor.peek(1)
    if second is not None and second.word in _CREATE_INSTEAD:
        what, hint = _CREATE_INSTEAD[second.word]
        third = cursor.peek(2)
        if second.word in ("TEMPORARY", "TEMP") and third is not None and third.word == "FUNCTION":
            hint = "write CREATE FUNCTION: sqlmig defines it wherever it is called"
        raise FormError(f"{what} is not supported", second.start, hint)
    if second is None or second.word not in STATEMENTS:
        found = f"`{second.text}`" if second else "the end of the statement"
        raise FormError(
            f"CREATE is followed by {found}", second.start if second else first.end, FORMS
        )
    for ahead in (2, 3):
        third = cursor.peek(ahead)
        if third is not None and third.word == "IF" and cursor.peek(ahead + 1) is not None:
            follower = cursor.peek(ahead + 1)
            if follower is not None and follower.word == "NOT":
                raise FormError(
                    "IF NOT EXISTS is not supported",
                    third.start,
                    "leave it out; sqlmig knows what exists",
                )


def refuse_rest(reader: Cursor, name: str) -> None:
    """Raises for what other systems allow behind CREATE TABLE, with what to write instead."""
    if reader.sees("AS"):
        raise FormError(
            "CREATE TABLE ... AS is not supported: a table holds input",
            reader.offset,
            f"write `CREATE MATERIALIZED VIEW {name} AS SELECT ...`",
        )
    if reader.sees("USING"):
        raise FormError(
            "USING is not supported: sqlmig keeps every table in Delta",
            reader.offset,
            "leave `USING` out",
        )
    raise reader.unexpected(
        "the end of the statement",
        "a table has columns, a PRIMARY KEY, PARTITIONED BY and a COMMENT",
    )
