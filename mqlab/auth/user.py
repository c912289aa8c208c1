"""Users: a name, a password, whether rules count for them, and whether they are let in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqlab.auth.errors import AuthenticationException
from mqlab.errors import LearnerError
from mqlab.protocol.json_body import JsonBody

SUPER, NORMAL = "Super", "Normal"
"""The types of users (org.apache.rocketmq.auth.authentication.enums.UserType); rules do not count for a super user."""

ENABLE, DISABLE = "enable", "disable"
"""Whether a user is let in (org.apache.rocketmq.auth.authentication.enums.UserStatus)."""

USER = "User"
"""The one type of subjects (org.apache.rocketmq.auth.authentication.enums.SubjectType)."""


def named(text: str | None, names: Iterable[str]) -> str | None:
    """Which of the names is meant, however it is written; None if none is, as Java's `getByName`."""
    wanted = (text or "").lower()
    return next((name for name in names if name.lower() == wanted), None)


def key_bytes(text: str) -> bytes:
    """The bytes of a name or a signature that came from outside; half of a surrogate pair is "?", as in Java."""
    return text.encode("utf-8", "replace")


@dataclass
class User(JsonBody):
    """A user, as administrators write it and as it stands in the file.

    Java: org.apache.rocketmq.auth.authentication.model.User and org.apache.rocketmq.remoting.protocol.body.UserInfo.
    """

    username: str = ""
    password: str = ""
    user_type: str | None = None
    user_status: str | None = None

    def __post_init__(self) -> None:
        self.user_type = named(self.user_type, (SUPER, NORMAL))
        self.user_status = named(self.user_status, (ENABLE, DISABLE))

    @property
    def subject(self) -> str:
        """The user as rules name it: "User:alice"."""
        return f"{USER}:{self.username}"

    @property
    def is_super(self) -> bool:
        """Whether everything is allowed to the user."""
        return self.user_type == SUPER

    def __repr__(self) -> str:
        return f"<User {self.username}: {self.user_type}, {self.user_status}>"


def user_of_subject(subject: str | None) -> str | None:
    """The name of the user that a subject is; None if it is none ("User:alice" is "alice").

    Java: org.apache.rocketmq.auth.authentication.model.Subject.of.
    """
    kind, _, name = (subject or "").partition(":")
    return name if named(kind, (USER,)) else None


def subject_key(subject: str | None) -> str | None:
    """A subject as rules are found by it, however it is written ("user:alice" is "User:alice"); None if it is none."""
    username = user_of_subject(subject)
    return None if username is None else User(username).subject


def check_user(user: User, *, is_new: bool) -> None:
    """AuthenticationException unless the user has a name, and a password if it is new.

    Java: org.apache.rocketmq.auth.authentication.manager.AuthenticationMetadataManagerImpl.validate.
    """
    if not user.username.strip():
        raise AuthenticationException("username can not be blank")
    if is_new and not user.password.strip():
        raise AuthenticationException("password can not be blank")


def check_texts(username: object, password: object) -> None:
    """LearnerError unless name and password are texts that UTF-8 can say: half of a surrogate pair is none."""
    if not _is_text(username):
        raise LearnerError(f"a user's name is text, not {username!r}", "write a name such as 'alice'")
    if not _is_text(password):
        raise LearnerError(f"the password of {username!r} is no text", "write one such as 'a password'")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and key_bytes(value).decode() == value
