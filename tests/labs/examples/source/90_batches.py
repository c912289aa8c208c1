# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   mqlab:
#     title: Taking in batches
#     question: In which order do messages leave a queue?
#     objectives:
#       - say which message leaves first
#       - say how many are left after a pull
#       - write the pull
#     minutes: 5
#     prerequisites: []
#     wrong_predictions:
#       - "first-out: the newest, as from a stack"
#       - "left: 0, since a pull takes everything"
# ---

# %% tags=["parameters"]
student_id = ""
waiting = 5

# %%
# %precision 3
import asyncio

from mqlab.check import NotSolvedYet, check, predict, reveal, seed_for

seed = seed_for(student_id, "90")
seed

# %% [markdown]
# ## A queue of five

# %% tags=["prediction"]
predict("first-out", "Which message leaves first?", choices=["the oldest", "the newest"], prediction=...)

# %% tags=["prediction"]
predict("left", "A pull takes at most 2. How many are left?", unit="messages", prediction=...)

# %%
queue = list(range(waiting))
taken = [await asyncio.sleep(0, queue.pop(0)) for _ in range(2)]
print("taken", taken)

# %%
reveal("first-out", "a", why="offsets grow, and a pull starts at the smallest one that is not consumed")

# %%
reveal("left", len(queue))

# %% [markdown]
# An error, shown once on purpose:

# %% tags=["raises-exception"]
1 / 0

# %% tags=["nbval-ignore-output"]
id(queue)

# %% [markdown]
# ## Build it

# %% [markdown] tags=["hints"]
# - A list can be cut in two.
# - What stands in front of place 2 is `queue[:2]`,
#   and what is left begins there.
# - A second piece begins at the same place. In which order are the two asked for?

# %% tags=["exercise"]
def pull(queue: list[int], limit: int) -> tuple[list[int], list[int]]:
    """At most `limit` messages, oldest first, and those that are left."""
    ### BEGIN SOLUTION
    return queue[:limit], queue[limit:]
    ### END SOLUTION


# %% tags=["check"]
check("90/pull", pull)

# %%
reveal()

# %% [markdown] tags=["teacher"]
# Ask what happens when the limit is larger than the queue.
