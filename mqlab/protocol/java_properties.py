"""Settings as they travel: the text of a Java properties file, one `name=value` a line.

Java: org.apache.rocketmq.common.MixAll.properties2String, string2Properties, object2Properties and properties2Object.
Settings are dataclasses whose fields are int, bool, str or one of a few words (an Enum); a field `listen_port` is the
property `listenPort`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum
from typing import Any

from mqlab.errors import LearnerError
from mqlab.protocol.header_codec import camel_case

_SPELLED = {
    "check_crc_on_recover": "checkCRCOnRecover",
    "broker_ip1": "brokerIP1",
    "broker_ip2": "brokerIP2",
    "pop_consumer_fs_service_init": "popConsumerFSServiceInit",
    "pop_consumer_kv_service_enable": "popConsumerKVServiceEnable",
    "pop_consumer_kv_service_init": "popConsumerKVServiceInit",
    "pop_consumer_kv_service_log": "popConsumerKVServiceLog",
    "use_pid_cold_ctr_strategy": "usePIDColdCtrStrategy",
    "skip_when_ck_re_put_reach_max_times": "skipWhenCKRePutReachMaxTimes",
}


def property_names(settings_class: type) -> dict[str, str]:
    """Field name -> property name, for the fields that are int, bool or str, sorted by property name."""
    plain = [f.name for f in fields(settings_class) if f.type in ("int", "bool", "str", int, bool, str)]
    names = {name: _SPELLED.get(name) or camel_case(name) for name in plain}
    return dict(sorted(names.items(), key=lambda pair: pair[1]))


def settings_to_properties(settings: Any) -> dict[str, str]:
    """All settings of a dataclass by property name."""
    return {name: _text(getattr(settings, field)) for field, name in _all_names(settings).items()}


def _all_names(settings: Any) -> dict[str, str]:
    """Field name -> property name, also for those that are one of a few words."""
    words = {f.name: camel_case(f.name) for f in fields(settings) if isinstance(getattr(settings, f.name), Enum)}
    return property_names(type(settings)) | words


def update_settings(properties: dict[str, str], *several: Any) -> None:
    """Set what the properties say, in each of several settings; unknown names are passed over, as in RocketMQ.

    LearnerError, with nothing set, when a value does not fit the type of its setting or is one that a process cannot
    be started with either.
    """
    changed: list[tuple[Any, str, Any]] = []
    for settings in several:
        by_property = {name: field for field, name in _all_names(settings).items()}
        changes = {
            by_property[name]: _value(name, getattr(settings, by_property[name]), text.strip())
            for name, text in properties.items()
            if name in by_property
        }
        made = replace(settings, **changes)
        changed += [(settings, field, getattr(made, field)) for field in changes]
    for settings, field, value in changed:
        setattr(settings, field, value)


def encode_java_properties(properties: dict[str, str]) -> str:
    """The text of the properties, each line ended by a newline."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def decode_java_properties(text: str) -> dict[str, str]:
    """The properties in a text; empty lines and those that begin with # or ! are comments."""
    properties: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "#!":
            name, _, value = line.partition("=")
            properties[name.strip()] = value.strip()
    return properties


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(name: str, present: object, text: str) -> Any:
    if isinstance(present, bool):
        return text.lower() == "true"
    if isinstance(present, int):
        try:
            return int(text)
        except ValueError:
            raise LearnerError(f"{name}={text} is not a number", "give a whole number") from None
    return text
