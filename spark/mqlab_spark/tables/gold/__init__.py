"""Gold: the tables that answer a question. Each is one file; docs/spark.md says how to add one."""

from mqlab_spark.tables.gold.anomalies import ANOMALIES
from mqlab_spark.tables.gold.audit import AUDIT
from mqlab_spark.tables.gold.check_backs import CHECK_BACKS
from mqlab_spark.tables.gold.clocks import CLOCKS
from mqlab_spark.tables.gold.filters import FILTERS
from mqlab_spark.tables.gold.flow_control import FLOW_CONTROL
from mqlab_spark.tables.gold.hold_outcomes import HOLD_OUTCOMES
from mqlab_spark.tables.gold.lag import LAG
from mqlab_spark.tables.gold.latency import LATENCY
from mqlab_spark.tables.gold.order_violations import ORDER_VIOLATIONS
from mqlab_spark.tables.gold.ownership import DOUBLE_OWNERSHIP
from mqlab_spark.tables.gold.pop import POP_OUTCOMES
from mqlab_spark.tables.gold.rebalances import REBALANCES
from mqlab_spark.tables.gold.replication import REPLICATION
from mqlab_spark.tables.gold.round_trips import ROUND_TRIPS
from mqlab_spark.tables.gold.sends import SENDS
from mqlab_spark.tables.gold.throughput import THROUGHPUT
from mqlab_spark.tables.gold.transaction_outcomes import TRANSACTION_OUTCOMES

ANSWERS = (
    CLOCKS, LATENCY, HOLD_OUTCOMES, FLOW_CONTROL, LAG, THROUGHPUT, SENDS, REBALANCES, DOUBLE_OWNERSHIP, POP_OUTCOMES,
    AUDIT, ORDER_VIOLATIONS, ANOMALIES, TRANSACTION_OUTCOMES, CHECK_BACKS, REPLICATION, FILTERS, ROUND_TRIPS,
)  # fmt: skip
