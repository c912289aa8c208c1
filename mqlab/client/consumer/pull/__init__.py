"""The pull consumer, whose application says when to pull, and the schedule service that pulls for it."""
