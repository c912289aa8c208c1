"""Master and slave: the commit log goes over a connection of its own, and the tables over requests.

    stream                  what travels: 8-byte reports, and frames of 12 bytes with a piece of the log behind
    DefaultHAService        one broker's part in replication; DefaultHAConnection for each slave, DefaultHAClient in one
    GroupTransferService    puts that wait until enough copies are there
    SlaveSynchronize        topics, groups, offsets and delays of the master, fetched once a minute

Nothing of it is imported by a world whose brokers have no slaves and wait for none.
"""
