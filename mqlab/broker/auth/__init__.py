"""A broker's users and rules, who looks at requests, and what administrators ask.

Java: org.apache.rocketmq.broker.auth, and the managers of the module `auth`.
"""
