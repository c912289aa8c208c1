"""Finding the answer to a question in somebody's own words, English or Chinese, without a network."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from mqlab.answers.page import Answer, answers

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[_\-./][A-Za-z0-9]+)*|[\u4e00-\u9fff]+")
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-./]")

_SAY_NOTHING = frozenset(
    """a an and are as at be been but by can could do does for from has have how i if in into is it its me my not of on
    or our should so still than that the their them then there these they this though to was we were what when where
    which while who why will with would you your rocketmq mq""".split()  # noqa: SIM905
)

_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e", "y")

_SAME = (
    "twice duplicate duplicated duplicates double doubled repeated again redelivered second 重复 再次 又来 一遍 第二次",
    "lost lose losing loses missing miss disappear vanished gone 丢失 丢 没了 消失",
    "delay late later delayed latency long longer slow 延迟 延时 很久 慢",
    "stuck stop stopped stops blocked blocking hang hangs hung stalled frozen 卡住 阻塞",
    "dlq deadletter letter letters 死信",
    "backlog accumulation accumulate lag pile piling behind diff 积压 堆积",
    "offset position progress 位点 偏移量 进度",
    "broker server",
    "restart restarted reboot redeploy deploy deployment upgrade rollout roll rolling pod pods 重启 发布 上线 部署",
    "fail refused rejected fails failed failure exception error errors 失败 报错 错误",
    "timeout timeouts 超时",
    "consume consumer consumers consumed consumption process processed processing handle handled listener 消费 处理",
    "send producer producers sender sending sends sent publish published 发送 生产者 生产",
    "invisible invisibility visibility 不可见",
    "order orderly ordered ordering fifo sequence 顺序 有序",
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
    "empty nothing none zero 空 收不到 拉不到 没有消息",
    "power outage 断电 掉电 停电",
    "big large size huge limit 过大 太大 超过 大小",
    "create created creating new 创建 新建 新",
    "group groups 消费组 消费者组",
    "route routes 路由",
    "busy 繁忙 忙",
    "reset 重置 回溯",
    "disk 磁盘 刷盘 落盘",
    "slave replica follower 主从 从节点",
    "subscription subscribe subscribes 订阅",
)
"""Words that people use for the same thing; each row is one."""

_K1, _B = 2.0, 0.3
"""Of BM25: how much a word counts that comes again, and how much long texts are held back."""

_WEIGHTS = (("question", 3.0), ("asked", 3.0), ("short", 1.0), ("page", 0.2))
"""How much the words of each part of a page count; those of the whole page count besides."""


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

    Two that stand together are a word besides, and so is a name such as maxReconsumeTimes.
    """
    found: list[str] = []
    last = ""
    for token in _TOKEN.findall(text):
        if not token.isascii():
            found += _chinese(token)
            last = ""
            continue
        parts = [part for part in _PARTS.sub(" ", token).lower().split() if part not in _SAY_NOTHING]
        for part in parts:
            word = _same().get(_stem(part), _stem(part))
            found += [word, f"{last} {word}"] if last else [word]
            last = word
        if len(parts) > 1:
            found.append("".join(parts))
    return found


def _chinese(text: str) -> Iterable[str]:
    """The known words in it, and each two characters that stand together: Chinese has no spaces."""
    same = _same()
    yield from (same[word] for word in same if not word.isascii() and word in text)
    yield from (text[i : i + 2] for i in range(len(text) - 1))


class _Index(NamedTuple):
    """All answers, what the words of each count, and how rare each word is."""

    counted: dict[Answer, dict[str, float]]
    rare: dict[str, float]


@cache
def _index() -> _Index:
    counted = {answer: _counted(answer) for answer in answers()}
    having = Counter(word for words in counted.values() for word in words)
    return _Index(counted, {word: math.log(1 + (len(counted) - n + 0.5) / (n + 0.5)) for word, n in having.items()})


def _counted(answer: Answer) -> dict[str, float]:
    texts = {"question": answer.question, "asked": " . ".join(answer.asked), "short": answer.short, "page": answer.text}
    counted: defaultdict[str, float] = defaultdict(float)
    for part, weight in _WEIGHTS:
        for word in words_of(texts[part]):
            counted[word] += weight
    return dict(counted)


def find(phrase: str) -> list[Answer]:
    """The answers that have something to do with a phrase, the best first: none where no word of it is in any.

    They are ranked by BM25, over the question, the words that others used for it, and the answer in short.
    """
    counted, rare = _index()
    totals = {answer: sum(words.values()) for answer, words in counted.items()}
    mean = sum(totals.values()) / len(totals)
    wanted = dict.fromkeys(words_of(phrase))

    def score(answer: Answer) -> float:
        words, long = counted[answer], 1 - _B + _B * totals[answer] / mean
        return sum(rare[w] * words[w] * (_K1 + 1) / (words[w] + _K1 * long) for w in wanted if w in words)

    scores = {answer: score(answer) for answer in counted}
    return sorted((answer for answer in scores if scores[answer]), key=lambda answer: -scores[answer])
