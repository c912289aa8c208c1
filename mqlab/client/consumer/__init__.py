"""Consumers: how messages are pulled, consumed and accounted for."""
