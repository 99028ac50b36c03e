"""sqlmig: migrations for SQL data pipelines on Spark and Delta Lake."""

from sqlmig.user_function import function as function

__version__ = "0.1.0"
