"""The tables of the pipeline: silver says what became of each thing, gold answers questions."""

from mqlab_spark.tables.gold import ANSWERS
from mqlab_spark.tables.silver import TABLES
from mqlab_spark.tables.table import BRONZE, EVENTS, GOLD, SILVER, TRACES, Column, Table, Tables

ALL = (*TABLES, *ANSWERS)
"""In an order in which each is made of those before it."""

__all__ = ["ALL", "ANSWERS", "BRONZE", "EVENTS", "GOLD", "SILVER", "TABLES", "TRACES", "Column", "Table", "Tables"]
