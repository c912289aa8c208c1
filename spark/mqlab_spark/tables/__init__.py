"""The tables of the pipeline: silver says what became of each thing, gold answers questions."""

from mqlab_spark.tables.marts import MARTS
from mqlab_spark.tables.silver import TABLES
from mqlab_spark.tables.table import BRONZE, EVENTS, GOLD, SILVER, TRACES, Column, Table, Tables

ALL = (*TABLES, *MARTS)
"""In an order in which each is made of those before it."""

__all__ = ["ALL", "BRONZE", "EVENTS", "GOLD", "MARTS", "SILVER", "TABLES", "TRACES", "Column", "Table", "Tables"]
