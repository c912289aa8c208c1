"""A broker with the parts that are made of its other parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.broker_parts import BrokerParts

if TYPE_CHECKING:
    from mqlab.broker.auth.broker_auth import BrokerAuth
    from mqlab.broker.coldctr.cold_data_control import ColdDataControl
    from mqlab.broker.pop.pop_parts import PopParts
    from mqlab.broker.pull_message_processor import PullMessageProcessor
    from mqlab.broker.query_assignment_processor import QueryAssignmentProcessor
    from mqlab.broker.transaction.transaction_services import TransactionServices


class WholeBroker(BrokerParts):
    """A broker, as those see it who need what is made of its parts; `BrokerController` is one."""

    pull_message_processor: PullMessageProcessor
    made_pop: PopParts | None
    """The parts of Pop, None while nobody has needed them."""

    made_transactions: TransactionServices | None
    """The parts of transactions, None while nobody has needed them."""

    @property
    def auth(self) -> BrokerAuth:
        """Users and rules, read now if nobody has needed them before."""
        raise NotImplementedError(f"{type(self).__name__} must define auth")

    @property
    def transactions(self) -> TransactionServices:
        """The parts of transactions, made and started now if nobody has needed them before."""
        raise NotImplementedError(f"{type(self).__name__} must define transactions")

    @property
    def cold_data_control(self) -> ColdDataControl:
        """Who holds readers of old messages back, made and started now if nobody has needed it before."""
        raise NotImplementedError(f"{type(self).__name__} must define cold_data_control")

    @property
    def pop(self) -> PopParts:
        """The parts of Pop, made and started now if nobody has needed them before."""
        raise NotImplementedError(f"{type(self).__name__} must define pop")

    def query_assignment_processor(self) -> QueryAssignmentProcessor:
        """Who shares queues out to consumers and knows who pops; it is made when it is first asked for."""
        raise NotImplementedError(f"{type(self).__name__} must define query_assignment_processor()")
