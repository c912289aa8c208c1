"""mqlab: a laboratory for the inside of a message queue."""

__version__ = "0.1.0"
