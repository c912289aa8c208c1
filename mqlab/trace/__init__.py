"""Everything that is worth seeing in a world, as one stream of typed events, and what reads it.

bus          parts publish their events here; each becomes a row of atoms
events/      the event kinds, one file per area
catalogue    the index of all kinds, their fields and types
record       one row as a person or a program wants to read it; a trace as text
history      every event so far, with a cursor
matching     which events are meant: a kind, a node, values of fields
breakpoints  stop where an event of interest happens
state        what a history has come to, folded from its events
monitors     small judges of what must always hold
digest       the hash of a whole trace
recorder     writes a trace to a file: JSON lines and Parquet
recorded     reads such files, and says of one that is cut that it is
"""
