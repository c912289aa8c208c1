"""Where notebooks that were handed out before find the tables that answer questions: `mqlab_spark.tables.gold`."""

import sys

from mqlab_spark.tables import gold

sys.modules[__name__] = gold
