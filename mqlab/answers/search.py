"""Finding the answer to a question in somebody's own words, English or Chinese, without a network."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache

from mqlab.answers.page import Answer, answers, phrasings

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[_\-./][A-Za-z0-9]+)*|[\u4e00-\u9fff]+")
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\-./]")

_SAY_NOTHING = frozenset(
    """a an and are as at be been but by can could do does for from has have how i if in into is it its me my not of on
    or our should so still than that the their them then there these they this though to was we were what when where
    which while who why will with would you your rocketmq mq""".split()  # noqa: SIM905
)

_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e", "y")

_SAME = (
    "twice duplicates doubled repeats repeatedly redelivery again second copies 重复 再次 又来 又 一遍 第二次"
    " 重新投递",
    "lost loss missing disappeared vanished gone drops dropped discarded 丢失 丢 没了 不见了 消失",
    "delay later latency 延迟 延时",
    "long slower slowly 很久 慢 耗时 时间长",
    "stuck stopped stops stalled blocks hanging hung frozen freezes 卡住 卡在 阻塞 堵 不动 假死",
    "dlq deadletter letters 死信",
    "backlog accumulates accumulation lags piling behind diff 积压 堆积",
    "offset position progress 位点 偏移量 偏移 进度",
    "broker servers 服务端",
    "restart rebooted redeployed deployed deployment upgrade rollout rolling released 重启 发布 上线 部署 发版 滚动",
    "pod instances nodes machines members replicas 实例 节点 机器",
    "fail failure refused rejects exception errors throws thrown 失败 报错 错误 异常 被拒",
    "timeout 超时",
    "consume consumption processing handling listener 消费 处理 监听器",
    "send sent produce publisher 发送 生产者 生产",
    "invisible invisibility visibility 不可见 可见性",
    "orderly ordered ordering fifo sequence sequential 顺序 有序 乱序",
    "order 订单",
    "retry reconsume 重试",
    "transaction transactional 事务",
    "broadcast 广播",
    "filter 过滤",
    "tag 标签",
    "queue 队列",
    "rebalance 重平衡 负载均衡",
    "message msgs 消息",
    "poll 长轮询",
    "pull 拉取 拉一次",
    "check checkback 回查",
    "half 半消息",
    "empty nothing none zero 空 收不到 拉不到 没有消息 分不到 没收到",
    "power outage electricity 断电 掉电 停电",
    "big large sizes huge 过大 太大 超过 大小",
    "max maximum limits upper 上限 最大",
    "create creation new fresh 创建 新建 新",
    "group 消费组 消费者组",
    "route 路由",
    "busy 繁忙 忙",
    "reset resetting rewind replay 重置 回溯",
    "disk flushes fsync 磁盘 刷盘 落盘",
    "slave follower 主从 从节点 从库",
    "subscription subscribes 订阅",
    "crash died dies dead down kills offline 宕机 挂了 挂掉 崩溃 下线",
    "success successful successfully succeeds 成功",
    "idle bored unused 空闲 闲着 没流量 没有流量",
    "effect effective ineffective ignored 不生效 没生效 没有生效 没效果 没有效果 没用 无效 不起作用 没反应"
    " 失效",
    "skip skipped 跳过",
    "old earlier previous historic historical history 历史 之前",
    "first 第一次 首次",
    "forever endless endlessly infinite infinitely unlimited indefinitely loops 无限 死循环 一直 没完没了",
    "scale expanding adding increased 扩容 增加 多加 加了",
    "uneven unevenly skewed unbalanced imbalance balanced 倾斜 不均匀 不均衡 不均",
    "renew renewal extended prolonged 续期 续约 延长",
    "ack acknowledged acknowledgement 确认",
    "hash hashcode 哈希",
    "collide collisions conflict 冲突 碰撞",
    "memory heap oom outofmemoryerror 内存 堆里",
    "thread 线程",
    "same 同一个 同一 相同 一样 同一条",
    "seconds sec 秒",
    "minute mins 分钟",
    "hour 小时",
    "namesrv nameserver namesrvaddr",
    "commit committing 提交",
    "store saved 存",
    "dashboard console 控制台",
    "schedule 定时",
    "level 等级 级别",
    "custom arbitrary 自定义 任意",
    "status 状态",
    "file image 文件 图片",
    "property headers 属性",
    "interval 间隔",
    "receive 收到",
    "switch failover 切换",
    "resend resent 重发",
    "topic 主题",
    "kubernetes k8s kubectl",
    "database db sql 数据库",
    "client 客户端",
    "online 在线",
    "auto automatic automatically 自动",
    "manual manually hand 手动 提前",
)
"""Words that people use for the same thing; each row is one."""

_K1, _B = 2.0, 0.3
"""Of BM25: how much a word counts that comes again, and how much long texts are held back."""

_WEIGHTS = (("question", 3.0), ("asked", 3.0), ("short", 1.0), ("page", 0.2))
"""How much the words of each part of a page count; those of the whole page count besides."""

_ROUNDS, _LEAD = 4, 40.0
"""Of learning: how often all questions are gone through, and by how much the right page shall lead."""


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@cache
def _same() -> dict[str, str]:
    """For each word of a row, its stem and its Chinese characters, the stem of the row's first word."""
    rows = [row.split() for row in _SAME]
    found = {word: _stem(row[0]) for row in rows for word in row}
    for row in rows:
        for word in row:
            found.setdefault(_stem(word), _stem(row[0]))
    return found


@cache
def _same_in_chinese() -> dict[str, str]:
    return {word: first for word, first in _same().items() if not word.isascii()}


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
            word = _one_of_many(part)
            found += [word, f"{last} {word}"] if last else [word]
            last = word
        if len(parts) > 1:
            found.append("".join(parts))
    return found


def _one_of_many(word: str) -> str:
    same, stem = _same(), _stem(word)
    return same.get(word) or same.get(stem, stem)


def _chinese(text: str) -> Iterable[str]:
    """The known words in it, and each two characters that stand together: Chinese has no spaces."""
    yield from (first for word, first in _same_in_chinese().items() if word in text)
    yield from (text[i : i + 2] for i in range(len(text) - 1))


Points = dict[str, dict[int, float]]
"""For each word what it counts for the pages, by their places in answers(): below 0 where it speaks against one."""


@cache
def _points() -> Points:
    """What a word counts by BM25, put right by questions whose page is known."""
    points = _by_bm25()
    _learn(points)
    return points


def _by_bm25() -> Points:
    counted = [_counted(answer) for answer in answers()]
    totals = [sum(words.values()) for words in counted]
    mean = sum(totals) / len(totals)
    having = Counter(word for words in counted for word in words)
    rare = {word: math.log(1 + (len(counted) - n + 0.5) / (n + 0.5)) for word, n in having.items()}
    points: Points = {}
    for page, words in enumerate(counted):
        long = 1 - _B + _B * totals[page] / mean
        for word, n in words.items():
            points.setdefault(word, {})[page] = rare[word] * n * (_K1 + 1) / (n + _K1 * long)
    return points


def _counted(answer: Answer) -> dict[str, float]:
    texts = {"question": answer.question, "asked": " . ".join(answer.asked), "short": answer.short, "page": answer.text}
    counted: defaultdict[str, float] = defaultdict(float)
    for part, weight in _WEIGHTS:
        for word in words_of(texts[part]):
            counted[word] += weight
    return dict(counted)


def _learn(points: Points) -> None:
    """Go through questions whose page is known, and change what their words count until that page leads.

    Where it does not, each word counts more for it, and as much less for the page that stands in its way: the
    passive-aggressive rule (Crammer et al., 2006). The questions come in the order of their letters: pages take turns.
    """
    heard = phrasings()
    known = [
        (phrase, page)
        for page, answer in enumerate(answers())
        for phrase in (answer.question, *answer.asked, *heard.get(answer.name, ()))
    ]
    lessons = [(dict.fromkeys(words_of(phrase)), page) for phrase, page in sorted(known)]
    for _ in range(_ROUNDS):
        for words, page in lessons:
            scores = _scores(points, words)
            rival = max(range(len(scores)), key=lambda other: (other != page, scores[other]))
            step = (_LEAD - (scores[page] - scores[rival])) / (2 * len(words))
            if step <= 0:
                continue
            for word in words:
                counts = points.setdefault(word, {})
                counts[page] = counts.get(page, 0.0) + step
                counts[rival] = counts.get(rival, 0.0) - step


def _scores(points: Points, words: Iterable[str]) -> list[float]:
    """What the words count for each page, taken together."""
    scores = [0.0] * len(answers())
    for word in words:
        for page, count in points.get(word, {}).items():
            scores[page] += count
    return scores


def find(phrase: str) -> list[Answer]:
    """The answers that have something to do with a phrase, the best first: none where no word of it is in any.

    They are ranked by BM25, over the question, the words that others used for it, and the answer in short; and by what
    the phrasings of docs/answers/phrasings.txt have taught about those words.
    """
    points, words = _points(), dict.fromkeys(words_of(phrase))
    scores = _scores(points, words)
    touched = {page for word in words for page in points.get(word, ())}
    return [answers()[page] for page in sorted(touched, key=lambda page: (-scores[page], page))]
