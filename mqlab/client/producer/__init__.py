"""Producers: how messages are sent."""
