"""Pop: the consumer takes messages for a while, from whichever queue has some, and acknowledges each by itself.

Imported when a broker first tells a push consumer to pop.
"""
