"""Pop: the broker hands out messages for a while, notes that in check points, and brings back what nobody acknowledged.

Nothing here is imported before a broker needs it.
"""
