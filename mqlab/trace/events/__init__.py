"""The event kinds, one file per area; `mqlab.trace.catalogue` is their index."""
