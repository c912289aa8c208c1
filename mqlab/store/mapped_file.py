"""Files of fixed size, one behind the other: how commit log and consume queues grow without end.

The name of a file is the offset of its first byte in the whole sequence, in 20 digits. A file has its full size from
the start; how far it is written is known by the one who writes, and after a restart only once recovery has found out.
"""

from __future__ import annotations

from mqlab.sim.disk import PAGE_BYTES, Disk, File
from mqlab.store.errors import StoreError
from mqlab.store.store_layout import check_file, offset_of_name


class MappedFile:
    """One file of a sequence (org.apache.rocketmq.store.logfile.DefaultMappedFile).

    `wrote_position` and `flushed_position` are positions in the file. Differs from RocketMQ: the file is not mapped,
    the disk reads and writes by position; the transient store pool and its third position are absent.
    """

    __slots__ = ("file", "file_from_offset", "file_size", "flushed_position", "store_timestamp", "wrote_position")

    def __init__(self, file: File, from_offset: int, file_size: int) -> None:
        self.file = file
        self.file_from_offset = from_offset
        self.file_size = file_size
        self.wrote_position = 0
        self.flushed_position = 0
        self.store_timestamp = 0
        """When the last message in it was stored, ms; known only for what was written in this life of the process."""

    @property
    def is_full(self) -> bool:
        """Is there no byte left?"""
        return self.wrote_position == self.file_size

    def append(self, data: bytes) -> None:
        """Write behind what is written."""
        self.file.write(self.wrote_position, data)
        self.wrote_position += len(data)

    def select(self, position: int, size: int) -> bytes | None:
        """`size` bytes from `position`, or None when they reach behind what is written."""
        return self.file.read(position, size) if position >= 0 and position + size <= self.wrote_position else None

    def flush(self, least_pages: int) -> int:
        """Make the file safe if it is full or has so many dirty pages (0: any dirty byte); the flushed position."""
        if self.is_able_to_flush(least_pages):
            self.file.flush()
            self.flushed_position = self.wrote_position
        return self.flushed_position

    def is_able_to_flush(self, least_pages: int) -> bool:
        """Is there enough to write to make a flush worth its time?"""
        if self.wrote_position == self.file_size:
            return self.flushed_position < self.wrote_position
        if least_pages > 0:
            return self.wrote_position // PAGE_BYTES - self.flushed_position // PAGE_BYTES >= least_pages
        return self.wrote_position > self.flushed_position

    def __repr__(self) -> str:
        written = f"{self.wrote_position} of {self.file_size} bytes written"
        return f"<MappedFile {self.file.path}: {written}, {self.flushed_position} flushed>"


class MappedFileQueue:
    """A sequence of files of one size (org.apache.rocketmq.store.MappedFileQueue); offsets count from its very
    beginning.
    """

    __slots__ = ("disk", "file_size", "flushed_where", "mapped_files", "path", "store_timestamp")

    def __init__(self, disk: Disk, path: str, file_size: int) -> None:
        self.disk = disk
        self.path = path
        self.file_size = file_size
        self.mapped_files: list[MappedFile] = []
        self.flushed_where = 0
        self.store_timestamp = 0
        """When the last message that a full flush made safe was stored, ms."""

    def load(self) -> None:
        """Take in the files of the folder, each as full until recovery knows better; StoreError at what is none.

        As in RocketMQ folders are passed over and a last file without a byte is deleted. Differs from RocketMQ: it
        takes any number for a name, and where one is no multiple of the size it reads and writes at wrong places.
        """
        names = self.disk.list(self.path)
        for name in names:
            path = f"{self.path}/{name}"
            from_offset = offset_of_name(name)
            if self.disk.is_dir(path):
                if from_offset is not None:
                    check_file(self.disk, path)
                continue
            file = self.disk.open(path)
            if file.size == 0 and name == names[-1]:
                self.disk.remove(path)
                continue
            if from_offset is None:
                raise StoreError(path, "its name is not an offset of 20 digits", "move what does not belong there away")
            if file.size != self.file_size:
                raise StoreError(
                    path,
                    f"the file has {file.size} bytes, all files here must have {self.file_size}",
                    "restore the file, or open the store with the size that it was written with",
                )
            if from_offset % self.file_size:
                raise StoreError(
                    path,
                    f"it begins at no multiple of {self.file_size}, the size of all files here",
                    "give the file its own name back, or move it away",
                )
            mapped = MappedFile(file, from_offset, self.file_size)
            mapped.wrote_position = mapped.flushed_position = self.file_size
            self.mapped_files.append(mapped)

    # -- where things are -------------------------------------------------------------------------------------------

    @property
    def min_offset(self) -> int:
        """The offset of the first byte that is still there, -1 without files."""
        return self.mapped_files[0].file_from_offset if self.mapped_files else -1

    @property
    def max_offset(self) -> int:
        """The offset behind the last byte written, 0 without files."""
        if not self.mapped_files:
            return 0
        last = self.mapped_files[-1]
        return last.file_from_offset + last.wrote_position

    def find(self, offset: int, *, first_if_missing: bool = False) -> MappedFile | None:
        """The file that holds an offset."""
        files = self.mapped_files
        if not files:
            return None
        last = files[-1]
        if 0 <= offset - last.file_from_offset < self.file_size:
            return last
        first = files[0]
        index = offset // self.file_size - first.file_from_offset // self.file_size
        if 0 <= index < len(files):
            file = files[index]
            if 0 <= offset - file.file_from_offset < self.file_size:
                return file
        # A file was taken out of the middle by hand, or has another one's name.
        for file in files:
            if file.file_from_offset <= offset < file.file_from_offset + self.file_size:
                return file
        return first if first_if_missing else None

    def next_file_offset(self, offset: int) -> int | None:
        """Where the first file behind an offset begins, None when there is none."""
        return next((file.file_from_offset for file in self.mapped_files if file.file_from_offset > offset), None)

    def read(self, offset: int, n: int) -> bytes:
        """The `n` bytes at an offset, as far as they were written and lie in one file."""
        file = self.find(offset)
        if file is None:
            return b""
        position = offset - file.file_from_offset
        return file.file.read(position, max(0, min(n, file.wrote_position - position)))

    def roll_next(self, offset: int) -> int:
        """The offset at which the file behind that of `offset` begins."""
        return offset + self.file_size - offset % self.file_size

    # -- growing and shrinking --------------------------------------------------------------------------------------

    def create(self, from_offset: int) -> MappedFile:
        """Add the file that begins at this offset."""
        mapped = MappedFile(self.disk.open(self.path_of(from_offset), self.file_size), from_offset, self.file_size)
        self.mapped_files.append(mapped)
        return mapped

    def path_of(self, from_offset: int) -> str:
        """The path of the file that begins at this offset."""
        return f"{self.path}/{from_offset:020d}"

    def last_for_append(self, start_offset: int = 0) -> MappedFile:
        """The file to append to: a new one when there is none (it begins at the start of `start_offset`'s) or the last
        is full.
        """
        if not self.mapped_files:
            return self.create(start_offset - start_offset % self.file_size)
        last = self.mapped_files[-1]
        return self.create(last.file_from_offset + self.file_size) if last.is_full else last

    def truncate_dirty_files(self, offset: int) -> None:
        """Let the sequence end at `offset`: files behind it are deleted, the one that holds it is written up to it."""
        kept = []
        for file in self.mapped_files:
            if file.file_from_offset + self.file_size <= offset:
                kept.append(file)
            elif offset >= file.file_from_offset:
                file.wrote_position = file.flushed_position = offset % self.file_size
                kept.append(file)
            else:
                self.disk.remove(file.file.path)
        self.mapped_files = kept

    def set_position(self, offset: int) -> None:
        """Let the sequence end at `offset`, all of it flushed."""
        self.flushed_where = offset
        self.truncate_dirty_files(offset)

    def drop_first(self) -> MappedFile:
        """Delete the first file."""
        file = self.mapped_files.pop(0)
        self.disk.remove(file.file.path)
        return file

    def drop_last(self) -> None:
        """Delete the last file."""
        self.disk.remove(self.mapped_files.pop().file.path)

    def destroy(self) -> None:
        """Delete all files and the folder."""
        self.mapped_files.clear()
        self.flushed_where = 0
        self.disk.rmtree(self.path)

    # -- flushing ---------------------------------------------------------------------------------------------------

    def flush(self, least_pages: int) -> bool:
        """Flush the file that stands at the flushed position; True if something was written."""
        file = self.find(self.flushed_where, first_if_missing=self.flushed_where == 0)
        if file is None:
            return False
        store_timestamp = file.store_timestamp
        where = file.file_from_offset + file.flush(least_pages)
        moved = where != self.flushed_where
        self.flushed_where = where
        if least_pages == 0 and store_timestamp:
            self.store_timestamp = store_timestamp
        return moved

    def flush_all(self) -> bool:
        """Flush whatever is written; True if something was."""
        moved = False
        while self.flush(0):
            moved = True
        return moved

    @property
    def last_store_timestamp(self) -> int:
        """When the last message written in this life of the process was stored, ms; 0 without one."""
        return self.mapped_files[-1].store_timestamp if self.mapped_files else 0

    def __repr__(self) -> str:
        return f"<MappedFileQueue {self.path}: {len(self.mapped_files)} files, [{self.min_offset}, {self.max_offset})>"
