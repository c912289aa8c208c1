"""What clients say of themselves, and what a proxy makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.topic_config import SubscriptionGroupConfig
from mqlab.protocol.v2.definition import ClientType, ExponentialBackoff, Metric, RetryPolicy, Settings, Subscription
from mqlab.protocol.v2.protobuf import Duration
from mqlab.proxy.retry_policy import retry_policy_of

if TYPE_CHECKING:
    from mqlab.proxy.client_manager import ClientManager
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.sim import Node, PeriodicTask

CLEAN_PERIOD_MS = 5_000


class GrpcClientSettingsManager:
    """Settings by client id; a consumer's are dropped when it is no member of its group any more.

    Java: org.apache.rocketmq.proxy.grpc.v2.common.GrpcClientSettingsManager.
    """

    def __init__(
        self, node: Node, config: ProxyConfig, metadata: ClusterMetadataService, clients: ClientManager
    ) -> None:
        self._node = node
        self._config = config
        self._metadata = metadata
        self._clients = clients
        self._settings: dict[str, Settings] = {}
        self._cleaner: PeriodicTask | None = None

    def start(self) -> None:
        """Begin to drop what nobody needs."""
        self._cleaner = self._node.schedule_with_fixed_delay(
            self.clean, CLEAN_PERIOD_MS, CLEAN_PERIOD_MS, "GrpcClientSettingsManagerCleaner"
        )

    def shutdown(self) -> None:
        """Drop nothing any more."""
        if self._cleaner is not None:
            self._cleaner.cancel()

    def update(self, client_id: str, settings: Settings) -> None:
        """Keep what a client says; a consumer has the settings of a new group until its own are known."""
        if settings.subscription is not None:
            default = self._merged_subscription(Settings(subscription=Subscription()), SubscriptionGroupConfig(""))
            settings = _merge(default, settings)
        self._settings[client_id] = settings

    def remove(self, client_id: str) -> Settings | None:
        """Forget a client: what it said."""
        return self._settings.pop(client_id, None)

    async def settings_of(self, client_id: str) -> Settings | None:
        """A client's settings with what the proxy and the group decide; None for a client that never said any.

        Java: org.apache.rocketmq.proxy.grpc.v2.common.GrpcClientSettingsManager.getClientSettings.
        """
        settings = self._settings.get(client_id)
        if settings is None:
            return None
        if settings.publishing is not None:
            settings = self._merged_publishing(settings)
        elif settings.subscription is not None and settings.subscription.group is not None:
            config = await self._metadata.subscription_group_config(settings.subscription.group.name)
            if config is not None:
                settings = self._merged_subscription(settings, config)
        return settings._replace(metric=Metric(on=False))

    def _merged_publishing(self, settings: Settings) -> Settings:
        config = self._config
        backoff = ExponentialBackoff(
            Duration(config.grpc_client_producer_backoff_initial_millis),
            Duration(config.grpc_client_producer_backoff_max_millis),
            float(config.grpc_client_producer_backoff_multiplier),
        )
        assert settings.publishing is not None
        publishing = settings.publishing._replace(
            validate_message_type=config.enable_topic_message_type_check, max_body_size=config.max_message_size
        )
        policy = RetryPolicy(config.grpc_client_producer_max_attempts, exponential_backoff=backoff)
        return settings._replace(backoff_policy=policy, publishing=publishing)

    def _merged_subscription(self, settings: Settings, group: SubscriptionGroupConfig) -> Settings:
        config = self._config
        assert settings.subscription is not None
        subscription = settings.subscription._replace(
            receive_batch_size=config.grpc_client_consumer_long_polling_batch_size,
            long_polling_timeout=Duration(config.grpc_client_consumer_max_long_polling_timeout_millis),
            fifo=group.consume_message_orderly,
        )
        policy = retry_policy_of(group.group_retry_policy).backoff(group.retry_max_times + 1)
        return settings._replace(subscription=subscription, backoff_policy=policy)

    def clean(self) -> None:
        """Drop the settings of consumers that have left."""
        for client_id, settings in list(self._settings.items()):
            if settings.client_type not in (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER):
                continue
            group = settings.subscription.group if settings.subscription is not None else None
            if group is None or not self._clients.is_consumer(group.name, client_id):
                del self._settings[client_id]


def _merge(default: Settings, given: Settings) -> Settings:
    """The given settings, with those of `default` where nothing was given (protobuf's mergeFrom)."""
    assert default.subscription is not None
    assert given.subscription is not None
    said = {name: value for name, value in given.subscription._asdict().items() if value not in (None, ())}
    subscription = default.subscription._replace(**said)
    return given._replace(subscription=subscription, backoff_policy=given.backoff_policy or default.backoff_policy)
