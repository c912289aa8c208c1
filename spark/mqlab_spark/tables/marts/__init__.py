"""Gold: the tables that answer a question. Each is one file; docs/spark.md says how to add one."""

from mqlab_spark.tables.marts.anomalies import ANOMALIES
from mqlab_spark.tables.marts.audit import AUDIT
from mqlab_spark.tables.marts.flow_control import FLOW_CONTROL
from mqlab_spark.tables.marts.hold_outcomes import HOLD_OUTCOMES
from mqlab_spark.tables.marts.lag import LAG
from mqlab_spark.tables.marts.latency import LATENCY
from mqlab_spark.tables.marts.order_violations import ORDER_VIOLATIONS
from mqlab_spark.tables.marts.ownership import DOUBLE_OWNERSHIP
from mqlab_spark.tables.marts.pop import POP_OUTCOMES
from mqlab_spark.tables.marts.rebalances import REBALANCES
from mqlab_spark.tables.marts.sends import SENDS
from mqlab_spark.tables.marts.throughput import THROUGHPUT

MARTS = (
    LATENCY, HOLD_OUTCOMES, FLOW_CONTROL, LAG, THROUGHPUT, SENDS, REBALANCES, DOUBLE_OWNERSHIP, POP_OUTCOMES, AUDIT,
    ORDER_VIOLATIONS, ANOMALIES,
)  # fmt: skip
