"""The lab: a world with its processes, what is done to it, how time passes in it, tables of what it holds."""

from mqlab.lab.lab import Lab, noting_labs

__all__ = ["Lab", "noting_labs"]
