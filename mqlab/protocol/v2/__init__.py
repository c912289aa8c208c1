"""What 5.x clients and a proxy say to each other: the messages of apache.rocketmq.v2, typed, with their field numbers.

`definition` holds what messages are made of, `service` the requests, the answers and the table of calls, `protobuf`
turns them into the bytes that a real client would send.
"""
