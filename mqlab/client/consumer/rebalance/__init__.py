"""Which queues a member has: the service, its rules for each kind of consumer, the locks of orderly queues."""
