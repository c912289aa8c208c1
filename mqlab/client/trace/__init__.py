"""Message trace: what producers and consumers did with each message, as messages of a topic of its own."""
