"""Rules: what a user may do with which topics, groups and clusters, from where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from mqlab.auth.errors import AuthorizationException
from mqlab.auth.user import named, subject_key
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.namespace import without_retry_and_dlq
from mqlab.protocol.topics import is_retry_topic

ANY, CLUSTER, TOPIC, GROUP = "Any", "Cluster", "Topic", "Group"
RESOURCE_TYPES = ("Unknown", ANY, CLUSTER, "Namespace", TOPIC, GROUP)
"""org.apache.rocketmq.common.resource.ResourceType."""

LITERAL, PREFIXED = "LITERAL", "PREFIXED"
"""How a rule names resources; the third way is ANY (org.apache.rocketmq.common.resource.ResourcePattern)."""

ALL, PUB, SUB, CREATE, UPDATE, DELETE, GET, LIST = "All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"
ACTIONS = ("Unknown", ALL, ANY, PUB, SUB, CREATE, UPDATE, DELETE, GET, LIST)
"""org.apache.rocketmq.common.action.Action."""

ALLOW, DENY = "Allow", "Deny"
CUSTOM, DEFAULT = "Custom", "Default"
"""The types of policies; the default one counts where no entry of the custom one fits."""


class Resource(NamedTuple):
    """What is asked for, or what a rule is about (org.apache.rocketmq.auth.authorization.model.Resource)."""

    resource_type: str
    resource_name: str | None
    resource_pattern: str

    @classmethod
    def of(cls, key: str | None) -> Resource | None:
        """The resource with this key: "Topic:Orders", "Topic:Or*", "Group:*", "*"; None if there is no such type."""
        if not (key or "").strip():
            return None
        return _resource(key or "")

    @classmethod
    def topic(cls, name: str | None) -> Resource:
        """A topic that a request is about."""
        return cls(TOPIC, name, LITERAL)

    @classmethod
    def group(cls, name: str | None) -> Resource:
        """A group that a request is about; a retry topic stands for its group."""
        return cls(GROUP, without_retry_and_dlq(name) if name and is_retry_topic(name) else name, LITERAL)

    @property
    def key(self) -> str:
        """How the resource is written."""
        if self.resource_type == ANY:
            return "*"
        if self.resource_pattern == ANY:
            return f"{self.resource_type}:*"
        name = "null" if self.resource_name is None else self.resource_name
        return f"{self.resource_type}:{name}{'*' if self.resource_pattern == PREFIXED else ''}"

    def matches(self, asked: Resource) -> bool:
        """Whether a rule about this resource is about what is asked for."""
        if self.resource_type == ANY:
            return True
        if self.resource_type != asked.resource_type:
            return False
        if self.resource_pattern == PREFIXED:
            return asked.resource_name is not None and asked.resource_name.startswith(self.resource_name or "")
        return self.resource_pattern == ANY or self.resource_name == asked.resource_name


@lru_cache(maxsize=1_000)
def _resource(key: str) -> Resource | None:
    if key == "*":
        return Resource(ANY, None, ANY)
    kind, _, name = key.partition(":")
    resource_type = named(kind, RESOURCE_TYPES)
    if resource_type is None:
        return None
    if name == "*":
        return Resource(resource_type, None, ANY)
    if name.endswith("*"):
        return Resource(resource_type, name.partition("*")[0], PREFIXED)
    return Resource(resource_type, name, LITERAL)


@dataclass
class PolicyEntry(JsonBody):
    """One rule (org.apache.rocketmq.auth.authorization.model.PolicyEntry).

    `source_ips` are addresses or ranges ("10.0.0.0/24"); without any the rule counts from everywhere.
    """

    resource: str | None = None
    actions: list[str] = field(default_factory=list)
    source_ips: list[str] | None = None
    decision: str | None = None

    def __post_init__(self) -> None:
        resource = Resource.of(self.resource)
        self.resource = None if resource is None else resource.key
        self.actions = [action for text in self.actions if (action := named(text, ACTIONS)) is not None]
        self.decision = named(self.decision, (ALLOW, DENY))

    @property
    def about(self) -> Resource:
        """The resource that the rule names."""
        resource = Resource.of(self.resource)
        assert resource is not None, "check_acl() refuses an entry without one"
        return resource

    def fits(self, asked: Resource, actions: Sequence[str], source_ip: str) -> bool:
        """Whether the rule says something of a request for any of these actions."""
        if not self.about.matches(asked):
            return False
        if not any(action in self.actions or ALL in self.actions for action in actions):
            return False
        return not self.source_ips or any(is_ip_in_range(source_ip, one) for one in self.source_ips)


@dataclass
class Policy(JsonBody):
    """The rules of one type (org.apache.rocketmq.auth.authorization.model.Policy)."""

    policy_type: str | None = None
    entries: list[PolicyEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.policy_type = named(self.policy_type, (CUSTOM, DEFAULT)) or CUSTOM

    def entry(self, resource: str | None) -> PolicyEntry | None:
        """The rule about this very resource."""
        return next((entry for entry in self.entries if entry.resource == resource), None)

    def update_entry(self, new: PolicyEntry) -> None:
        """Add a rule, or put it in the place of the one about the same resource."""
        old = self.entry(new.resource)
        if old is None:
            self.entries.append(new)
        else:
            old.actions, old.source_ips, old.decision = new.actions, new.source_ips, new.decision


@dataclass
class Acl(JsonBody):
    """All rules for a subject, as administrators write them and as they stand in the file.

    Java: org.apache.rocketmq.auth.authorization.model.Acl and org.apache.rocketmq.remoting.protocol.body.AclInfo.
    """

    subject: str | None = None
    policies: list[Policy] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.subject = subject_key(self.subject)

    def policy(self, policy_type: str) -> Policy | None:
        """The policy of this type, if there is one."""
        return next((policy for policy in self.policies if policy.policy_type == policy_type), None)

    def update_policies(self, policies: list[Policy]) -> None:
        """Add rules to those that are there."""
        for new in policies:
            assert new.policy_type is not None
            old = self.policy(new.policy_type)
            if old is None:
                self.policies.append(new)
            else:
                for entry in new.entries:
                    old.update_entry(entry)

    def delete_policy(self, policy_type: str, resource: str) -> None:
        """Take the rule about this very resource away, and the policy when it was the last one."""
        policy = self.policy(policy_type)
        if policy is None:
            return
        entry = policy.entry(resource)
        if entry is not None:
            policy.entries.remove(entry)
        if not policy.entries:
            self.policies.remove(policy)


def check_acl(acl: Acl) -> None:
    """AuthorizationException for rules that say nothing, or nothing that can be understood.

    Java: org.apache.rocketmq.auth.authorization.manager.AuthorizationMetadataManagerImpl.validate.
    """
    if acl.subject is None:
        raise AuthorizationException("The subject is null.")
    if not acl.policies:
        raise AuthorizationException("The policies is empty.")
    for policy in acl.policies:
        for entry in policy.entries:
            _check_entry(entry)


def _check_entry(entry: PolicyEntry) -> None:
    if entry.resource is None:
        raise AuthorizationException("The resource is null.")
    if not entry.actions:
        raise AuthorizationException("The actions is empty.")
    if ANY in entry.actions:
        raise AuthorizationException("The actions can not be Any.")
    for source_ip in entry.source_ips or ():
        if not source_ip.strip():
            raise AuthorizationException("The source ip is empty.")
        if not is_valid_ip_or_cidr(source_ip):
            raise AuthorizationException("The source ip is invalid.")
    if entry.decision is None:
        raise AuthorizationException("The decision is null or illegal.")


def is_valid_ip_or_cidr(text: str) -> bool:
    """Whether a text is an address or a range of addresses.

    Java: org.apache.rocketmq.common.utils.IPAddressUtils.isValidIPOrCidr. Differs from it: short forms ("1.2.3/8") and
    names of hosts are none.
    """
    address, slash, prefix = text.partition("/")
    try:
        if slash:
            return prefix.isdecimal() and ip_network(text, strict=False) is not None
        return ip_address(address) is not None
    except ValueError:
        return False


def is_ip_in_range(ip: str, cidr: str) -> bool:
    """Whether an address is this one, or in this range; what is no address is in none (IPAddressUtils.isIPInRange)."""
    if "/" not in cidr:
        return ip == cidr
    try:
        address = ip_address(ip.strip("[]"))
        network = ip_network(cidr, strict=False)
    except ValueError:
        return False
    return address.version == network.version and address in network


def matched_entry(acl: Acl, asked: Resource, actions: Sequence[str], source_ip: str) -> PolicyEntry | None:
    """The rule that decides: of all custom rules that fit the first one in RocketMQ's order, else of the default ones.

    Java: org.apache.rocketmq.auth.authorization.chain.AclAuthorizationHandler.matchPolicyEntries.
    """
    for policy_type in (CUSTOM, DEFAULT):
        policy = acl.policy(policy_type)
        fitting = [] if policy is None else [e for e in policy.entries if e.fits(asked, actions, source_ip)]
        if fitting:
            return tim_sorted(fitting, compare_entries)[0]
    return None


def compare_entries(one: PolicyEntry, other: PolicyEntry) -> int:
    """Below 0 when the first of two rules goes before the second, 0 when they are equal.

    This is what 5.3.3 does, which is not what it seems to intend: of two prefixes the shorter one goes first, of two
    rules that are equal so far the one that allows, and ANY is compared with a literal by decision alone. Java:
    org.apache.rocketmq.auth.authorization.chain.AclAuthorizationHandler.comparePolicyEntries.
    """
    compare = 0
    a, b = one.about, other.about
    if a.resource_type != b.resource_type:
        compare = -1 if b.resource_type == ANY else 1 if a.resource_type == ANY else 0
    elif a.resource_pattern == b.resource_pattern:
        if a.resource_pattern == PREFIXED:
            compare = len(a.resource_name or "") - len(b.resource_name or "")
    elif a.resource_pattern in (LITERAL, PREFIXED):
        compare = -1
    if compare:
        return compare
    return 1 if one.decision == DENY else -1 if other.decision == DENY else 0


def tim_sorted(
    entries: list[PolicyEntry], compare: Callable[[PolicyEntry, PolicyEntry], int]
) -> list[PolicyEntry]:
    """The entries in the order in which Java sorts up to 31 of them: a run at the beginning, then binary insertion.

    The comparison contradicts itself, so it matters which entries meet. Java: java.util.TimSort.
    """
    out = list(entries)
    if len(out) < 2:
        return out
    run = 2
    descends = compare(out[1], out[0]) < 0
    while run < len(out) and (compare(out[run], out[run - 1]) < 0) == descends:
        run += 1
    if descends:
        out[:run] = reversed(out[:run])
    for at in range(run, len(out)):
        entry = out.pop(at)
        left, right = 0, at
        while left < right:
            middle = (left + right) // 2
            if compare(entry, out[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        out.insert(left, entry)
    return out
