"""Which messages a subscription wants: `filter_for` makes its filter, in whatever language its expression is written.

Who reads or wakes (pull, Pop, the requests that are held) asks a `MessageFilter` and never which one it is.
"""
