"""Drawn worlds hold all rules: here some seeds, and worlds in which RocketMQ is right and a rule once was not."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial, plan_from_text, plan_text, rules_of_flushing
from mqlab.explore.rules_of_calls import CallsEnd
from mqlab.explore.rules_of_delivery import OTHER_UNIT, SKIPPED, USED_TWICE
from mqlab.explore.rules_of_entries import KEPT_BY_SLAVE, OVERTAKEN
from mqlab.explore.rules_of_leftovers import GHOST
from mqlab.explore.rules_of_order import InOrder
from mqlab.explore.rules_of_pop import IN_TURNS, NO_RECORD
from mqlab.explore.rules_of_replication import SHORTER
from mqlab.explore.rules_of_reviving import IN_ORDER_NO_MORE
from mqlab.explore.rules_of_settling import BEGINS_AGAIN
from mqlab.explore.rules_of_transactions import EndedIsLeftAlone
from mqlab.explore.stale_entries import STALE
from mqlab.explore.stopped_timer import TORN, WHEEL_AHEAD

BASE = "name-server n; broker broker-a; "
TO_POP = "topic Orders queues=1; producer p; pop w members=2"
TO_WAIT = "topic Orders queues=1; producer p messages=40"
TO_SUBSCRIBE = "topic Orders; topic Payments queues=1; producer p topic=Payments messages=40"
WAITING = "at 100ms: suspend w for_ms=20000; at 5000ms: reset w back_ms=0"


@pytest.mark.parametrize("seed", [*range(12), 1_528, 2_015, 2_044])
def test_drawn_worlds_hold_all_rules(seed: int) -> None:
    outcome = Trial("drawn", seed).outcome
    assert outcome.passed, f"{plan_text(outcome.plan)}: {outcome.breaches[0]}"


@pytest.mark.parametrize(
    ("seed", "world", "faults"),
    [
        pytest.param(21, "producer p; push w consume_message_batch_max_size=2", "", id="a listener of batches"),
        pytest.param(24, "producer p; orderly w consume_message_batch_max_size=2", "", id="batches in order"),
        pytest.param(36, "topic Orders queues=1; producer p; orderly w tags=paid", "", id="tags in order"),
        pytest.param(3, "producer p way=batches; lite w tags=paid", "", id="tags and polls"),
        pytest.param(100, "producer p way=batches; push w refuse_one_in=5", "", id="one id for a batch"),
        pytest.param(
            571, "topic Orders; producer p way=batches messages=40; push w tags=paid members=3 refuse_one_in=5", "",
            id="one id for a batch, with tags",
        ),
        pytest.param(
            473, "producer p way=async messages=40 every_ms=20; lite w members=2",
            "at 1731ms: power_off broker-a for 605ms", id="polled after it was lost",
        ),
        pytest.param(2202, "producer p way=async every_ms=20 auto_batch=true; orderly w", "", id="keys of all"),
        pytest.param(
            717, "topic Orders; producer p delay_level=2; pop w refuse_one_in=20", "", id="revived and delayed again",
        ),
        pytest.param(
            640, "topic Orders; producer p delay_level=1; pop w refuse_one_in=5 members=2", "", id="the same once more",
        ),
        pytest.param(
            50179, "producer p; orderly w refuse_one_in=5 max_reconsume_times=1", "", id="given up in order",
        ),
        pytest.param(1, f"{TO_POP}; at 6000ms: reset w", "", id="what is done comes again after a reset"),
        pytest.param(1, f"broker b pop_consumer_kv_service_enable=true; {TO_POP}; at 6000ms: reset w", "",
                     id="the same in the key-value engine"),
        pytest.param(7, f"{TO_WAIT}; push w; {WAITING}", "", id="passed over by a reset"),
        pytest.param(7, f"{TO_WAIT}; orderly w; {WAITING}", "", id="passed over in order"),
        pytest.param(
            7, f"{TO_WAIT}; schedule w next_delay_ms=1000; at 3400ms: reset w back_ms=0", "",
            id="passed over by who pulls in turns",
        ),
        pytest.param(
            7, f"{TO_WAIT}; lite w; at 15404ms: reset w back_ms=3000; at 15775ms: seek w to=begin", "",
            id="a reset and a seek at once",
        ),
        pytest.param(
            1, "topic Orders; producer p messages=40 every_ms=500; push w; at 100ms: suspend w for_ms=20000; "
            "at 5000ms: scale Orders queues=1", "", id="a queue that is read no more",
        ),
        pytest.param(
            1, "topic Orders; producer p messages=40; pop w; at 6000ms: delete-group w clean_offset=true", "",
            id="a group that is forgotten",
        ),
        pytest.param(
            1, "producer p messages=40; push w; at 12000ms: restart-broker broker-a flush_disk_type=SYNC_FLUSH",
            "at 5000ms: power_off broker-a for 100ms", id="flushed first only later",
        ),
        pytest.param(
            7, "broker b init_pop_offset_by_check_msg_in_mem=false; topic Orders queues=1; producer p; pop w "
            "consume_from_where=CONSUME_FROM_LAST_OFFSET", "", id="popped from the end on",
        ),
        pytest.param(
            1, "broker b init_pop_offset_by_check_msg_in_mem=false; topic Orders queues=1; producer p; proxy p-1; "
            "push5 w", "", id="popped from the end on through a proxy",
        ),
        pytest.param(
            50059, "producer shop-1 timer_ms=6000; broadcasting w members=3 "
            "consume_from_where=CONSUME_FROM_LAST_OFFSET", "at 6003ms: crash w-3 for 134214ms",
            id="a member that had written nothing begins anew",
        ),
        pytest.param(
            1, "topic Orders; transactions p debit_ms=5000; at 2000ms: restart-broker broker-a", "",
            id="stopped before the first end",
        ),
        pytest.param(
            525, "broker broker-b; topic Orders queues=1; producer shop-1 way=batches messages=20 every_ms=20 "
            "delay_level=2 recall_one_in=3; asker asker-1 messages=20 every_ms=1000 size=30 timeout_ms=3000 "
            "to=selector; transactions bank-1 messages=16 every_ms=200 size=30; schedule clerks-1 members=2; "
            "replier repliers-1 members=2 refuse_one_in=20 slow_ms=3000; at 16012ms: reset repliers-1",
            "at 5132ms: crash asker-1 for 2566ms; at 8256ms: drift clerks-1-1 by -879 for 1695ms",
            id="one id in the topic and in the retry topic at once",
        ),
        pytest.param(
            310, "broker broker-b; topic Orders queues=1; topic Payments queues=1; producer shop-1 topic=Payments "
            "way=batches to=selector messages=20 every_ms=20; asker asker-1 topic=Payments messages=20 every_ms=200 "
            "size=30 timeout_ms=500 to=selector; replier repliers-1 members=3 refuse_one_in=20; "
            "replier repliers-2 topic=Payments members=2 moves=true slow_ms=3000",
            "at 6513ms: power_off broker-a for 898ms", id="a key that is torn",
        ),
        pytest.param(
            1, "topic Orders; replier w; asker p messages=20; producer q timer_ms=1500; producer r messages=40; pop v; "
            "transactions s", "at 1000ms: slow_disk broker-a by 300ms for 9000ms", id="all that a slow disk makes wait",
        ),
        pytest.param(
            2, f"{TO_SUBSCRIBE}; lite w tags=paid; at 8000ms: subscribe w topic=Payments", "",
            id="polled by tags, later",
        ),
        pytest.param(
            2, f"{TO_SUBSCRIBE}; push w tags=paid consume_message_batch_max_size=8; at 8000ms: subscribe w "
            "topic=Payments", "", id="batches by tags, later",
        ),
        pytest.param(
            1, "topic Orders; proxy x; producer5 p messages=40", "at 3000ms: partition broker-a | x for 60s",
            id="each try has the time-out",
        ),
    ],
)  # fmt: skip
def test_what_rocketmq_does_breaks_no_rule(seed: int, world: str, faults: str) -> None:
    outcome = Trial("drawn", seed, {"world": BASE + world}, plan_from_text(faults)).outcome
    assert outcome.passed, outcome.breaches[0]


@pytest.mark.parametrize(
    ("seed", "world", "faults", "exception"),
    [
        pytest.param(
            27, "broker broker-a enable_property_filter=true; topic Payments; producer shop-1 topic=Payments; "
            "pop poppers-3 topic=Payments refuse_one_in=5; "
            "at 7200ms: restart-broker broker-a max_transfer_count_on_message_in_memory=1",
            "at 12586ms: power_off broker-a for 1690ms", STALE, id="a reviver that gets an entry of zeros and no more",
        ),
        pytest.param(
            43, "broker broker-b max_index_num=400; topic Payments; producer shop-2 topic=Payments; "
            "lite pollers-1 topic=Payments; at 10880ms: restart-pollers pollers-1 down_ms=100; "
            "at 13104ms: reset pollers-1", "", "", id="a reset that is told to a client that has ended",
        ),
        pytest.param(
            0, "broker broker-a; topic Orders; producer p messages=10; push w",
            "at 5000ms: freeze broker-a for 50000ms", GHOST, id="one member over many connections that have ended",
        ),
        pytest.param(
            295, "broker broker-a; topic Orders; producer shop-1; at 3502ms: delete-topic Orders", "", "",
            id="a topic that is deleted",
        ),
        pytest.param(
            384, "broker broker-a; topic Orders; topic Reminders; producer shop-1 topic=Reminders to=queue messages=40 "
            "every_ms=100; at 3534ms: delete-topic Reminders", "", "", id="deleted while a message waits for its entry",
        ),
        pytest.param(
            803, "broker broker-a; topic Orders queues=1; producer p delay_level=2 messages=24 every_ms=100 size=30; "
            "at 14500ms: delete-topic Orders", "at 466ms: fill_disk broker-a by 12800 for 14368ms", "",
            id="deleted while its first message waits for its entry",
        ),
        pytest.param(
            2, "broker a broker_role=SYNC_MASTER in_sync_replicas=2; slave s of=a; broker b; topic Orders queues=4; "
            "transactions p messages=20 every_ms=300", "at 1000ms: freeze s for 5000ms; at 1746ms: crash a for 5s", "",
            id="a half message sent to another broker, too",
        ),
        pytest.param(
            0, "broker broker-a; slave slave-a1 of=broker-a; topic Orders queues=1; producer p messages=40 "
            "every_ms=300; at 3000ms: delete-topic Orders", "", KEPT_BY_SLAVE, id="a topic that its master has deleted",
        ),
        pytest.param(
            947, "broker broker-a enable_consume_queue_ext=true mapped_file_size_commit_log=16384; slave slave-a1 "
            "known=true; topic Orders; topic Transfers type=TRANSACTION; proxy proxy-1; producer5 shop5-1; "
            "transactions5 bank5-1 topic=Transfers every_ms=1000", "at 71016ms: fill_disk slave-a1 by 15379 for "
            "13331ms", OVERTAKEN, id="a file deleted before its messages had entries",
        ),
        pytest.param(
            1, "broker broker-b flush_disk_type=SYNC_FLUSH; topic Orders; group auditors-1 "
            "consume_message_orderly=true; producer shop-1; proxy proxy-1; simple5 auditors-1 refuse_one_in=5; "
            "at 17613ms: delete-group auditors-1 clean_offset=true", "at 6572ms: power_off broker-b for 3795ms",
            IN_ORDER_NO_MORE, id="popped in order no more",
        ),
        pytest.param(
            574, "broker broker-a recall_message_enable=true; topic Orders; topic Payments; topic Transfers "
            "type=TRANSACTION; topic Reminders; producer shop-1 every_ms=300 size=1000 timer_ms=1500 recall_one_in=3; "
            "producer shop-2 size=30; asker asker-1 timeout_ms=3000; proxy proxy-1; transactions5 bank5-1 "
            "topic=Transfers messages=8 size=100 debit_ms=10", "at 4626ms: power_off broker-a for 1407ms", WHEEL_AHEAD,
            id="taken back under the same key, in the place of one that was lost",
        ),
        pytest.param(
            458, "broker broker-a enable_property_filter=true; topic Payments; producer shop-2 topic=Payments "
            "way=batches-async messages=100 every_ms=100 enable_trace=true; lite pollers-1 topic=Payments wants=gifts",
            "at 3365ms: power_off broker-a for 5925ms", "", id="polled by a condition while its broker is away",
        ),
        pytest.param(
            248, "broker broker-a flush_interval_consume_queue=3000; broker broker-b; topic Orders queues=2; "
            "producer shop-1 way=async to=selector messages=40",
            "at 4892ms: power_off broker-a for 3234ms; at 9605ms: power_off broker-a for 1199ms", STALE,
            id="an entry of the right place and another size",
        ),
        pytest.param(
            341, "broker broker-a; topic Orders queues=1; producer shop-1 way=batches messages=100 every_ms=100; "
            "transactions bank-1 every_ms=1000; orderly cooks-1 tags=paid||late refuse_one_in=20 pull_interval=1000; "
            "at 8482ms: restart-members cooks-1", "at 6672ms: power_off broker-a for 7683ms", TORN,
            id="a message that was lost, and is there without its tag",
        ),
        pytest.param(
            470, "broker broker-a mapped_file_size_commit_log=16384 in_sync_replicas=3 broker_role=SYNC_MASTER; slave "
            "slave-a2; producer shop-1 way=batches size=1000", "at 562ms: fill_disk slave-a2 by 5652 for 11962ms",
            "", id="a slave whose disk was full as its first bytes came",
        ),
        pytest.param(
            514, "broker broker-a enable_property_filter=true; topic Reminders type=DELAY; group listeners-1 "
            "consume_message_orderly=true; proxy proxy-1; producer5 shop5-1 topic=Reminders every_ms=20 way=later; "
            "push5 listeners-1 topic=Reminders slow_ms=100000; at 8919ms: restart-server proxy-1", "", "",
            id="a listener that is still at the delivery of before",
        ),
        pytest.param(
            552, "broker broker-a; broker broker-b; producer shop-1 messages=200 timer_ms=6000 "
            "mq_client_api_timeout=500 send_msg_max_timeout_per_request=500; at 16085ms: restart-broker broker-b",
            "at 690ms: partition broker-b | shop-1 for 1473ms; at 11994ms: slow_disk broker-a by 1901ms for 6745ms",
            "", id="sent again while it waits for the log",
        ),
        pytest.param(
            460, "broker broker-a enable_property_filter=true; topic Orders; producer shop-1 to=queue messages=200 "
            "every_ms=20 delay_level=2; orderly cooks-1 wants=ordinary; at 5205ms: restart-broker broker-a down_ms=500",
            "at 15545ms: power_off broker-a for 5917ms", USED_TWICE, id="past an offset that is used twice",
        ),
        pytest.param(
            460, "broker broker-a enable_property_filter=true; topic Orders queues=1; producer shop-1 to=queue "
            "messages=200 every_ms=20 size=30 delay_level=2; pop poppers-1 wants=few; orderly cooks-1 wants=ordinary "
            "members=2 slow_ms=3000; at 5205ms: restart-broker broker-a down_ms=500",
            "at 15545ms: power_off broker-a for 5917ms", SKIPPED, id="corrected to a message that is not wanted",
        ),
        pytest.param(
            515, "broker broker-a; broker broker-b; broker broker-c transaction_time_out=1000 "
            "transaction_check_interval=5000; topic Orders queues=1; producer shop-1 topic=Orders way=one-way "
            "messages=200 every_ms=300; transactions bank-1 topic=Orders every_ms=1000 immune_s=18",
            "at 8721ms: power_off broker-c for 81ms", TORN, id="how long it is immune is lost",
        ),
        pytest.param(
            1192, "broker broker-a; broker broker-b flush_disk_type=SYNC_FLUSH; topic Orders; producer shop-1 "
            "way=batches-async messages=200 every_ms=100; producer shop-2 way=one-way to=selector timer_ms=6000; "
            "push workers-1 tags=paid refuse_one_in=5 runs=together", "", "", id="one offset in two queues",
        ),
        pytest.param(
            1115, "broker broker-a enable_property_filter=true in_sync_replicas=2 broker_role=SYNC_MASTER; "
            "slave slave-a1 known=true; topic Orders; topic Transfers; producer shop-1 every_ms=300 size=1000; "
            "proxy proxy-1; transactions bank-1 immune_s=0 at_once=true client_async_semaphore_value=20 "
            "client_oneway_semaphore_value=1 pull_time_delay_mills_when_exception=3000; push5 listeners-1 topic=Orders "
            "tags=paid||late wants=all members=1 moves=false slow_ms=20 max_cache_message_size_in_bytes=1000; simple5 "
            "auditors-1 topic=Transfers tags=paid||late wants=some members=2 moves=true batch=1 refuse_one_in=5 "
            "await_duration=10000; at 70135ms: restart-slave slave-a1 down_ms=500 flush_commit_log_least_pages=8; "
            "at 73236ms: restart-slave slave-a1 down_ms=500 offset_check_in_slave=true long_polling_enable=false",
            "at 77232ms: crash broker-a for 919ms", "", id="an acknowledgement that is sent again after a crash",
        ),
        pytest.param(
            1378, "broker broker-b broker_role=SYNC_MASTER slave_timeout=1000 in_sync_replicas=2; slave slave-b1 "
            "of=broker-b known=true; topic Steps type=FIFO; producer shop-1 topic=Steps messages=100 every_ms=100 "
            "timer_ms=1500; proxy proxy-1; producer5 shop5-1 topic=Steps size=100 way=in-order timer_ms=6000 "
            "recall_one_in=3; push5 listeners-1 topic=Steps tags=paid||late wants=all members=1 moves=false "
            "refuse_one_in=20 slow_ms=100000; at 79324ms: restart-slave slave-b1 down_ms=500; "
            "at 79374ms: restart-broker broker-b down_ms=500", "", "", id="a handle whose new time comes too late",
        ),
        pytest.param(
            2175, "broker broker-a enable_property_filter=true pop_consumer_kv_service_enable=true; topic Orders; "
            "producer shop-1 messages=100; pop poppers-1 wants=late members=2; at 10918ms: reset poppers-1",
            "at 4452ms: hang_disk broker-a for 10307ms", "", id="a reset while a pop waits for the disk",
        ),
        pytest.param(
            2380, "broker broker-a enable_property_filter=true; topic Orders; group listeners-1 "
            "consume_message_orderly=true; producer shop-1 messages=200; proxy proxy-1; push5 listeners-1 "
            "refuse_one_in=20 max_cache_message_count=8; at 8925ms: delete-group listeners-1 clean_offset=false", "",
            IN_ORDER_NO_MORE, id="behind what is to be tried again, in order no more",
        ),
        pytest.param(
            2267, "broker broker-a enable_property_filter=true; broker broker-b enable_property_filter=true; topic "
            "Orders queues=2; group auditors-1 consume_message_orderly=true; producer shop-1; proxy proxy-1; simple5 "
            "auditors-1 members=2 refuse_one_in=5; at 15816ms: restart-server namesrv-1", "", IN_ORDER_NO_MORE,
            id="popped in order no more, since no name server knew the broker",
        ),
        pytest.param(
            1, "broker broker-a memory_bytes=20000 max_transfer_count_on_message_in_memory=1 slave_read_enable=true "
            "offset_check_in_slave=true; slave slave-a1 of=broker-a known=true; topic Orders queues=1; producer p "
            "messages=200 every_ms=100 size=1000; lite w pull_threshold_for_queue=1",
            "at 67625ms: power_off broker-a for 2s", SHORTER, id="a slave that sends its reader back without end",
        ),
        pytest.param(
            1, "broker broker-a pop_consumer_kv_service_enable=true; topic Steps queues=1 type=FIFO; group auditors-1 "
            "consume_message_orderly=true; producer p topic=Steps messages=200 every_ms=300; proxy x; simple5 "
            "auditors-1 topic=Steps members=1 batch=1", "at 18533ms: crash broker-a for 12615ms", BEGINS_AGAIN,
            id="a pop in order that begins again without end",
        ),
    ],
)  # fmt: skip
def test_what_drawn_worlds_have_shown_breaks_no_rule(seed: int, world: str, faults: str, exception: str) -> None:
    outcome = Trial("drawn", seed, {"world": f"name-server namesrv-1; {world}"}, plan_from_text(faults)).outcome
    assert outcome.passed, outcome.breaches[0]
    assert not exception or exception in outcome.excused


def test_a_broker_without_long_polling_tells_nobody_that_a_message_came() -> None:
    world = "name-server n; broker broker-a long_polling_enable=false; producer p every_ms=500; lite w members=2"
    outcome = Trial("drawn", 4, {"world": world}, ()).outcome
    assert outcome.passed, outcome.breaches[0]


def test_a_delay_level_may_be_ahead_of_its_queue_after_two_losses_of_power() -> None:
    world = (
        "name-server namesrv-1; broker broker-a; topic Orders queues=1; producer shop-1 messages=40 every_ms=500 "
        "delay_level=1; producer shop-2; push workers-1"
    )
    faults = "at 10145ms: power_off broker-a for 1585ms; at 11803ms: power_off broker-a for 70ms"
    outcome = Trial("drawn", 118, {"world": world}, plan_from_text(faults)).outcome
    assert outcome.passed, outcome.breaches[0]
    assert "a delay level ahead of its queue" in outcome.excused


@pytest.mark.parametrize(
    ("seed", "world", "faults", "exception"),
    [
        (1, "topic Orders; producer p; orderly w; at 5000ms: unsubscribe w", "", "a topic that is read no more"),
        (
            5, "topic Orders queues=1; producer p messages=40; orderly w slow_ms=60000; at 5000ms: reset w; "
            "at 5200ms: reset w; at 6000ms: reset w", "", "a listener at work in a queue that is taken anew",
        ),
        (
            1, "topic Orders queues=1; producer p messages=40; lite w; at 2000ms: unsubscribe w; "
            "at 3000ms: subscribe w", "", "a topic that is taken again at once",
        ),
    ],
)  # fmt: skip
def test_what_people_do_meets_what_rocketmq_does_by_name(seed: int, world: str, faults: str, exception: str) -> None:
    outcome = Trial("drawn", seed, {"world": BASE + world}, plan_from_text(faults)).outcome
    assert outcome.passed, outcome.breaches[0]
    assert exception in outcome.excused


def test_a_proxy_asks_a_slave_whose_master_is_away() -> None:
    world = f"{BASE}slave s of=broker-a; topic Orders; proxy p; simple5 w; producer q messages=40"
    faults = plan_from_text("at 3000ms: crash broker-a for 90000ms")
    outcome = Trial("drawn", 1, {"world": world}, faults).outcome
    assert outcome.passed, outcome.breaches[0]
    assert "a proxy that prefers a master" in outcome.excused


def test_a_lock_stays_at_a_broker_that_no_route_names() -> None:
    world = (
        "name-server namesrv-1; broker broker-a; broker broker-b; topic Payments; orderly cooks-1 topic=Payments; "
        "at 14305ms: suspend cooks-1"
    )
    faults = plan_from_text("at 12517ms: disconnect namesrv-1 | broker-a")
    outcome = Trial("drawn", 1177, {"world": world}, faults).outcome
    assert outcome.passed, outcome.breaches[0]
    assert "a lock at a broker that no route names" in outcome.excused


def test_an_end_behind_a_stale_entry_may_not_be_read() -> None:
    world = (
        "name-server n-1; name-server n-2; broker broker-a max_transfer_count_on_message_in_memory=1; "
        "topic Orders queues=2; producer shop-1 messages=10 every_ms=500 delay_level=2; transactions bank-1 "
        "messages=4 every_ms=200; schedule clerks-1"
    )
    faults = "at 4194ms: fill_disk broker-a by 13185 for 2699ms; at 6799ms: power_off broker-a for 1900ms"
    trial = Trial("drawn", 23035, {"world": world}, plan_from_text(faults))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert next(rule for rule in trial.rules if isinstance(rule, EndedIsLeftAlone)).excused[STALE]


def test_a_pop_whose_notes_find_no_room_is_not_answered() -> None:
    world = "name-server n; broker b pop_consumer_kv_service_enable=true; topic Orders queues=1; producer p messages=40"
    faults = "at 3000ms: fill_disk b by 400 for 2000ms"
    trial = Trial("drawn", 49, {"world": f"{world}; pop w members=2"}, plan_from_text(faults))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert next(rule for rule in trial.rules if isinstance(rule, CallsEnd)).excused[NO_RECORD]


def test_a_unit_of_another_message_hides_what_an_orderly_reader_wants() -> None:
    world = (
        "name-server namesrv-1; broker broker-a enable_consume_queue_ext=true "
        "max_transfer_count_on_message_in_memory=1; topic Orders queues=2; "
        "producer shop-1 way=batches messages=40; transactions bank-1; "
        "orderly cooks-1 tags=paid pull_interval=1000"
    )
    trial = Trial("drawn", 63, {"world": world}, plan_from_text("at 6799ms: power_off broker-a for 7411ms"))
    assert trial.outcome.passed, trial.outcome.breaches[0]
    assert next(rule for rule in trial.rules if isinstance(rule, InOrder)).excused[OTHER_UNIT] == 3


def test_what_a_lite_pull_consumer_leaves_out_is_never_passed() -> None:
    outcome = Trial("drawn", 23, {"world": BASE + "producer p; lite w tags=paid"}, ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert "what a lite pull consumer leaves out" in outcome.excused


def test_retries_of_two_forms_take_turns_at_who_pops_one_at_a_time() -> None:
    world = (
        "name-server n; broker broker-a enable_retry_topic_v2=true; broker broker-b; broker broker-c; topic Orders; "
        "producer p messages=40 delay_level=1; proxy x; simple5 w batch=1 refuse_one_in=2"
    )
    outcome = Trial("drawn", 10, {"world": world}, ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert IN_TURNS in outcome.excused


def test_a_key_that_many_messages_have_brings_the_newest_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_of_flushing, "MOST_ANSWERS", 1)
    world = f"{BASE}topic Orders queues=1; producer p messages=20; push w refuse_one_in=1 max_reconsume_times=3"
    outcome = Trial("drawn", 1, {"world": world}, ()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert outcome.judged["EveryKeyIsFound"] > 20
