"""Transactions in a broker: half messages, what ends them, and asking what became of them.

A half message is stored in a topic that nobody reads, RMQ_SYS_TRANS_HALF_TOPIC. Its commit stores a copy where it
belongs; commit and rollback both write the half message's offset into RMQ_SYS_TRANS_OP_HALF_TOPIC. Every 30 s a thread
compares the two queues, and asks a producer of the group about each half message that has no such record. Nothing of
this is made, and nothing imported, before a broker has a half message to keep.
"""
