"""Answers by symptom: questions as people ask them, each with a world in which it happens.

    from mqlab.answers import answers, find

    find("messages consumed twice after restart")[0].question

An answer is a page in docs/answers: its question, other words for it, the answer in short, a world of a few lines with
what it prints, why it is so, what to do, and where that stands in RocketMQ.
"""

from mqlab.answers.page import Answer, answers, read_page
from mqlab.answers.search import find

__all__ = ["Answer", "answers", "find", "read_page"]
