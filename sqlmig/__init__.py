"""sqlmig: migrations for SQL data pipelines on Spark and Delta Lake."""

__version__ = "0.1.0"
