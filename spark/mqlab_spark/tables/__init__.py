"""The tables of the pipeline: silver says what became of each thing, gold answers questions."""

from mqlab_spark.tables.marts import MARTS
from mqlab_spark.tables.silver import TABLES
from mqlab_spark.tables.table import EVENTS, GOLD, SILVER, Column, Table, Tables

ALL = (*TABLES, *MARTS)
"""In an order in which each is made of those before it."""

__all__ = ["ALL", "EVENTS", "GOLD", "MARTS", "SILVER", "TABLES", "Column", "Table", "Tables"]
