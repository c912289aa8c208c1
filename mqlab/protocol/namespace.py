"""Namespaces: a prefix `NS%` that keeps the topics and groups of different owners apart on one cluster.

Java: org.apache.rocketmq.remoting.protocol.NamespaceUtil. The prefix stands behind `%RETRY%` and `%DLQ%`.
"""

from __future__ import annotations

from mqlab.protocol.topics import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    is_dlq_topic,
    is_retry_topic,
    is_sys_consumer_group,
    is_system_topic,
    retry_topic,
)

NAMESPACE_SEPARATOR = "%"


def wrap_namespace(namespace: str, resource: str) -> str:
    """The resource (a topic or a group) inside the namespace; RocketMQ's own stay as they are."""
    if not namespace or not resource or _is_system(resource) or is_already_with_namespace(resource, namespace):
        return resource
    return f"{_prefix(resource)}{namespace}{NAMESPACE_SEPARATOR}{without_retry_and_dlq(resource)}"


def wrap_namespace_and_retry(namespace: str, group: str) -> str | None:
    """The retry topic of a group inside the namespace; None without a group."""
    return retry_topic(wrap_namespace(namespace, group)) if group else None


def without_namespace(resource: str, namespace: str | None = None) -> str:
    """The resource without its namespace; with `namespace` only when it is that one."""
    if not resource or _is_system(resource):
        return resource
    if namespace is not None and not is_already_with_namespace(resource, namespace):
        return resource
    _, separator, rest = _split(resource)
    return _prefix(resource) + rest if separator else resource


def namespace_of(resource: str) -> str:
    """The namespace of a resource, empty when it has none."""
    if not resource or _is_system(resource):
        return ""
    namespace, separator, _ = _split(resource)
    return namespace if separator else ""


def is_already_with_namespace(resource: str, namespace: str) -> bool:
    """Whether the resource is in that namespace."""
    if not namespace or not resource or _is_system(resource):
        return False
    return without_retry_and_dlq(resource).startswith(namespace + NAMESPACE_SEPARATOR)


def without_retry_and_dlq(resource: str) -> str:
    """The resource without `%RETRY%` or `%DLQ%` before it."""
    return resource[len(_prefix(resource)) :]


def _prefix(resource: str) -> str:
    if is_retry_topic(resource):
        return RETRY_GROUP_TOPIC_PREFIX
    return DLQ_GROUP_TOPIC_PREFIX if is_dlq_topic(resource) else ""


def _split(resource: str) -> tuple[str, str, str]:
    """Namespace, separator and rest; no separator when there is no namespace before it."""
    namespace, separator, rest = without_retry_and_dlq(resource).partition(NAMESPACE_SEPARATOR)
    return (namespace, separator, rest) if namespace else ("", "", resource)


def _is_system(resource: str) -> bool:
    return is_system_topic(resource) or is_sys_consumer_group(resource)
