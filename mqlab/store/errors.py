"""What can be wrong with a store directory."""

from __future__ import annotations

from ..errors import LearnerError


class StoreError(LearnerError):
    """A store directory cannot be opened; `path` is the file or folder, `hint` says what to do.

    Where RocketMQ refuses to start (a commit-log file of another size, for instance), so does mqlab.
    """

    def __init__(self, path: str, message: str, hint: str) -> None:
        super().__init__(f"{path}: {message}", hint)
        self.path = path
