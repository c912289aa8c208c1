"""Headers of making, changing and deleting topics and subscription groups on a broker.

Java: org.apache.rocketmq.remoting.protocol.header.CreateTopicRequestHeader, DeleteTopicRequestHeader and neighbours.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import put_first


@put_first("order")
class CreateTopicRequestHeader(NamedTuple):
    """Makes a topic or changes it (UPDATE_AND_CREATE_TOPIC).

    `attributes` is a text of changes as in `+queue.type=BatchCQ,-reserve.time`.
    """

    topic: str
    default_topic: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_filter_type: str
    topic_sys_flag: int | None = None
    order: bool | None = False
    attributes: str | None = None
    force: bool | None = False


class DeleteTopicRequestHeader(NamedTuple):
    """Deletes a topic from a broker (DELETE_TOPIC_IN_BROKER)."""

    topic: str


class GetTopicConfigRequestHeader(NamedTuple):
    """Asks for the settings of one topic (GET_TOPIC_CONFIG)."""

    topic: str
    bname: str | None = None
    lo: bool | None = None


class GetAllTopicConfigRequestHeader(NamedTuple):
    """Asks for the settings of all topics, page by page or, without fields, at once (GET_ALL_TOPIC_CONFIG)."""

    topic_seq: int | None = None
    data_version: str | None = None
    max_topic_num: int | None = None


class GetAllTopicConfigResponseHeader(NamedTuple):
    """How many topics there are in all, when pages were asked for."""

    total_topic_num: int | None = None


class DeleteSubscriptionGroupRequestHeader(NamedTuple):
    """Deletes a subscription group, with its progress if wanted (DELETE_SUBSCRIPTIONGROUP)."""

    group_name: str
    clean_offset: bool | None = False


class GetSubscriptionGroupConfigRequestHeader(NamedTuple):
    """Asks for the settings of one group (GET_SUBSCRIPTIONGROUP_CONFIG)."""

    group: str


class GetAllSubscriptionGroupRequestHeader(NamedTuple):
    """Asks for the settings of all groups (GET_ALL_SUBSCRIPTIONGROUP_CONFIG)."""

    group_seq: int | None = None
    data_version: str | None = None
    max_group_num: int | None = None


class GetAllSubscriptionGroupResponseHeader(NamedTuple):
    """How many groups there are in all, when pages were asked for."""

    total_group_num: int | None = None


class ViewBrokerStatsDataRequestHeader(NamedTuple):
    """How much of this was there over the last minute, hour and day? (VIEW_BROKER_STATS_DATA)"""

    stats_name: str
    stats_key: str


class GetBrokerConfigResponseHeader(NamedTuple):
    """The version of the broker's settings, as JSON; the settings are in the body."""

    version: str
