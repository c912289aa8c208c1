"""Finding the answer to a question in somebody's own words, English or Chinese, without a network."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from mqlab.answers.page import Answer, answers

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[_\-./][A-Za-z0-9]+)*|[\u4e00-\u9fff]+")
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-./]")

_SAY_NOTHING = frozenset(
    """a an and are as at be been but by can could do does for from has have how i if in into is it its me my not of on
    or our should so still than that the their them then there these they this though to was we were what when where
    which while who why will with would you your rocketmq mq""".split()  # noqa: SIM905  # a text is easier to read
)

_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e", "y")

_SAME = (
    "twice duplicate duplicated duplicates double doubled repeatedly repeated again redelivered 重复",
    "lost lose losing loses missing miss disappear vanished gone 丢失 丢",
    "delay late delayed latency long slow 延迟 延时",
    "stuck stop stopped stops blocked blocking hang hangs hung stalled frozen 卡住 阻塞",
    "dlq deadletter letters 死信",
    "backlog accumulation accumulate lag pile piling behind diff 积压 堆积",
    "offset position progress 位点 偏移量 进度",
    "broker server",
    "restart restarted reboot redeploy deploy deployment upgrade 重启",
    "fail fails failed failure exception error errors 失败 报错 错误",
    "timeout timeouts 超时",
    "consume consumer consumers consumed consumption 消费",
    "send producer producers sender sending sends sent 发送",
    "invisible invisibility visibility 不可见",
    "order orderly ordered sequence 顺序",
    "retry retries reconsume 重试",
    "transaction transactions transactional 事务",
    "broadcast broadcasting 广播",
    "filter filtering filters 过滤",
    "tag tags 标签",
    "queue queues 队列",
    "rebalance rebalancing 重平衡 负载均衡",
    "message messages msg 消息",
    "poll polling 长轮询",
    "pull pulling 拉取",
    "check checked checks checkback 回查",
    "half 半消息",
    "disk 磁盘",
    "slave replica follower 主从 从节点",
    "subscription subscribe subscribes 订阅",
)
"""Words that people use for the same thing; each row is one."""

_K1, _B = 1.4, 0.6
"""Of BM25: how much a word counts that comes again, and how much long texts are held back."""

_WEIGHTS = (("question", 3), ("asked", 3), ("short", 1), ("page", 0))
"""How often the words of each part of a page are counted."""


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@cache
def _same() -> dict[str, str]:
    """For each word, or Chinese characters, of a row the first word of it that is English."""
    found: dict[str, str] = {}
    for row in _SAME:
        words = row.split()
        first = next(word for word in words if word.isascii())
        for word in words:
            found[_stem(word) if word.isascii() else word] = _stem(first)
    return found


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared: lower case, without endings, one for those that mean the same.

    A name such as maxReconsumeTimes is its words, and one word besides.
    """
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if not token.isascii():
            found += _chinese(token)
            continue
        parts = [part for part in _PARTS.sub(" ", token).lower().split() if part not in _SAY_NOTHING]
        found += [_same().get(_stem(part), _stem(part)) for part in parts]
        if len(parts) > 1:
            found.append("".join(parts))
    return found


def _chinese(text: str) -> Iterable[str]:
    """The known words in it, and each two characters that stand together: Chinese has no spaces."""
    same = _same()
    yield from (same[word] for word in same if not word.isascii() and word in text)
    yield from (text[i : i + 2] for i in range(len(text) - 1))


@cache
def _index() -> tuple[tuple[Answer, Counter[str], int], ...]:
    return tuple((answer, (counted := _counted(answer)), counted.total()) for answer in answers())


def _counted(answer: Answer) -> Counter[str]:
    texts = {"question": answer.question, "asked": " ".join(answer.asked), "short": answer.short}
    counted: Counter[str] = Counter()
    for part, weight in _WEIGHTS:
        for word in words_of(texts.get(part, "")):
            counted[word] += weight
    return counted


def find(phrase: str) -> list[Answer]:
    """The answers that have something to do with a phrase, the best first: none where no word of it is in any.

    They are ranked by BM25, over the question, the words that others used for it, and the answer in short.
    """
    index = _index()
    mean = sum(total for _, _, total in index) / len(index)
    scores: list[tuple[float, int]] = []
    wanted = dict.fromkeys(words_of(phrase))
    for place, (_, counted, total) in enumerate(index):
        score = 0.0
        for word in wanted:
            count = counted[word]
            if count:
                having = sum(word in other for _, other, _ in index)
                rare = math.log(1 + (len(index) - having + 0.5) / (having + 0.5))
                score += rare * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * total / mean))
        if score:
            scores.append((-score, place))
    return [index[place][0] for _, place in sorted(scores)]
