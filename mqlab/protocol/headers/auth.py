"""The headers of what administrators ask about users and rules."""

from typing import NamedTuple


class CreateUserRequestHeader(NamedTuple):
    """Make a user; the body says the rest."""

    username: str | None = None


class UpdateUserRequestHeader(NamedTuple):
    """Change a user."""

    username: str | None = None


class DeleteUserRequestHeader(NamedTuple):
    """Remove a user and the rules for him."""

    username: str | None = None


class GetUserRequestHeader(NamedTuple):
    """Show a user."""

    username: str | None = None


class ListUsersRequestHeader(NamedTuple):
    """Show all users whose names hold `filter`."""

    filter: str | None = None


class CreateAclRequestHeader(NamedTuple):
    """Add rules; the body says them."""

    subject: str | None = None


class UpdateAclRequestHeader(NamedTuple):
    """Add or change rules."""

    subject: str | None = None


class DeleteAclRequestHeader(NamedTuple):
    """Remove the rule about a resource, or all rules for a subject."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class GetAclRequestHeader(NamedTuple):
    """Show the rules for a subject."""

    subject: str | None = None


class ListAclsRequestHeader(NamedTuple):
    """Show the rules for all subjects with `subject_filter` in them, about resources with `resource_filter`."""

    subject_filter: str | None = None
    resource_filter: str | None = None
