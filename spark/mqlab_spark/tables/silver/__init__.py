"""Silver: a row for each thing that lives through many events."""

from mqlab_spark.tables.silver.deliveries import DELIVERIES
from mqlab_spark.tables.silver.holds import HOLDS
from mqlab_spark.tables.silver.lives import LIVES
from mqlab_spark.tables.silver.messages import MESSAGES
from mqlab_spark.tables.silver.pops import POPS
from mqlab_spark.tables.silver.replicas import REPLICAS
from mqlab_spark.tables.silver.replies import REPLIES
from mqlab_spark.tables.silver.requests import REQUESTS
from mqlab_spark.tables.silver.transactions import TRANSACTIONS
from mqlab_spark.tables.silver.worlds import WORLDS

TABLES = (WORLDS, MESSAGES, DELIVERIES, LIVES, REQUESTS, HOLDS, POPS, TRANSACTIONS, REPLICAS, REPLIES)
