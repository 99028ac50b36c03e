"""Puts a table back to a version: with delta-rs in milliseconds, by Spark where only that can."""

from __future__ import annotations

from sqlmig.errors import EngineError, NoSpaceError
from sqlmig.execution.engine import Engine, Warehouse
from sqlmig.execution.values import Mark, Written


def put_back(
    warehouse: Warehouse, engine: Engine, folder: str, version: int, mark: Mark
) -> Written:
    """Put the table in `folder` back to a version, rows and schema; the table after it.

    Args:
        mark: what the commit carries.

    Raises:
        EngineError: the version, or its files, are gone, or the table can't be written to.
    """
    written = warehouse.restore(folder, version, mark)
    return written if written is not None else engine.restore(folder, version, mark)


def put_back_if_kept(
    warehouse: Warehouse, engine: Engine, folder: str, version: int, mark: Mark
) -> Written | EngineError:
    """The same; or the error, where something else can be done instead: old files were vacuumed.

    Raises:
        NoSpaceError: the disk is full. Whatever else is done needs more of it.
    """
    try:
        return put_back(warehouse, engine, folder, version, mark)
    except NoSpaceError:
        raise
    except EngineError as error:
        return error
