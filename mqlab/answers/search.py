"""Finding the answer to a question in somebody's own words, English or Chinese, without a network."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from mqlab.answers.page import Answer, answers

_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-./]")

_SAY_NOTHING = frozenset(
    "a an and are as at be been but by can could do does for from has have how i if in into is it its me my not of on or "
    "our should so still than that the their them then there these they this though to was we were what when where which "
    "while who why will with would you your rocketmq mq".split()
)

_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e", "y")

_SAME = (
    "twice duplicate duplicated duplicates double doubled repeatedly repeated again redelivered",
    "lost lose losing loses missing miss disappear vanished gone",
    "slow late delay delayed latency long",
    "stuck stop stopped stops blocked blocking hang hangs hung stalled frozen",
    "dlq dead-letter deadletter letters",
    "backlog accumulation accumulate lag pile piling behind diff",
    "offset position progress",
    "broker server",
    "restart restarted reboot redeploy deploy deployment upgrade",
    "fail fails failed failure exception error errors",
    "timeout time-out timeouts",
    "consumer consumers consume consumed consumption",
    "producer producers sender send sending sends sent",
    "invisible invisibility visibility",
    "重复 twice", "丢失 丢 lost", "延迟 延时 delay", "积压 堆积 backlog", "死信 dlq", "重启 restart", "超时 timeout",
    "位点 偏移量 进度 offset", "失败 报错 错误 fail", "卡住 阻塞 stuck", "不消费 consume", "消费 consume", "发送 send", "顺序 order",
    "重试 retry", "事务 transaction", "广播 broadcast", "过滤 filter", "标签 tag", "队列 queue", "重平衡 负载均衡 rebalance",
    "消息 message", "长轮询 poll", "拉取 pull", "回查 check", "半消息 half", "磁盘 disk", "主从 slave", "心跳 heartbeat", "订阅 subscription",
)  # fmt: skip
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
    """The words of a text as they are compared: lower case, without endings, one for those that mean the same."""
    found: list[str] = []
    for word in _WORD.findall(_PARTS.sub(" ", text).lower() + " " + text.lower()):
        if word.isascii():
            if word not in _SAY_NOTHING:
                found.append(_same().get(_stem(word), _stem(word)))
        else:
            found += _chinese(word)
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
