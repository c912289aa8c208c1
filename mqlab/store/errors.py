"""What can be wrong with a store directory, and with what is to be stored."""

from __future__ import annotations

from mqlab.errors import LearnerError, MqlabError


class StoreError(LearnerError):
    """A store directory cannot be opened; `path` is the file or folder, `hint` says what to do.

    Where RocketMQ refuses to start (a commit-log file of another size, for instance), so does mqlab.
    """

    def __init__(self, path: str, message: str, hint: str) -> None:
        super().__init__(f"{path}: {message}", hint)
        self.path = path


class RecordTooLarge(MqlabError):
    """What is to be stored does not fit in any file of the commit log."""

    def __init__(self, size: int, file_size: int) -> None:
        super().__init__(f"the record takes {size} bytes, a file of the commit log has {file_size}")
        self.size = size
        self.file_size = file_size
