"""The second engine of Pop: who has what in hand is a record in a key-value store, and no message of a revive topic.

Entry point: `PopConsumerService`. Java: package org.apache.rocketmq.broker.pop.
"""
