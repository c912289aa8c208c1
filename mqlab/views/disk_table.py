"""The files of a disk as a table: how large they are, how much of them holds data, what a power cut could take."""

from __future__ import annotations

from mqlab.sim import MemoryDisk
from mqlab.views.table import Table


def disk_table(disk: MemoryDisk, folder: str = "") -> Table:
    """The files below a folder: size and data in bytes, and how many 4 KiB pages were written but not flushed."""
    rows = []
    for path in disk.files():
        if path.startswith(folder):
            file = disk.open(path)
            rows.append((path, file.size, file.data_end(), len(file.dirty_pages)))
    header = ("file", "size", "data up to byte", "pages not flushed")
    return Table(f"the disk of {disk.name}", header, rows)
