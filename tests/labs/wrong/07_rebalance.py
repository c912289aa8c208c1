"""Plausible wrong solutions of lab 07_rebalance, each of which its check catches."""

from __future__ import annotations

from mqlab.protocol.message import MessageQueue


def deals_like_cards(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """One queue to each in turn: even, and another strategy (AVG_BY_CIRCLE)."""
    return queues[members.index(client_id) :: len(members)]


def forgets_the_rest(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """Blocks of the size rounded down: what does not divide evenly belongs to nobody."""
    share = len(queues) // len(members)
    start = members.index(client_id) * share
    return queues[start : start + share]


def gives_the_rest_to_the_last(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """Blocks of the size rounded down, and all that is left over goes to the last member."""
    share = len(queues) // len(members)
    place = members.index(client_id)
    return queues[place * share :] if place == len(members) - 1 else queues[place * share : (place + 1) * share]


def rounds_up(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """Blocks of the size rounded up: the last members get too little, or nothing."""
    share = -(-len(queues) // len(members))
    start = members.index(client_id) * share
    return queues[start : start + share]


WRONG = {"07/own-share": [deals_like_cards, forgets_the_rest, gives_the_rest_to_the_last, rounds_up]}
