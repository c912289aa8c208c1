"""Builds the labs' notebooks from their text sources: `python -m mqlab.labs build|check|new`.

The format is described in docs/labs.md. Nothing in mqlab imports this package: its entry points are used,
and its checks, by name.
"""
