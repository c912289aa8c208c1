"""Service threads: loops that keep their grid and cost nothing while there is no work."""

from __future__ import annotations

from mqlab.sim import Node, ServiceThread, World


class Reput(ServiceThread):
    """Works off a backlog, one item a turn, every 10 ms."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, period_ms=10)
        self.backlog = 0
        self.turns: list[int] = []

    def has_work(self) -> bool:
        return self.backlog > 0

    def tick(self) -> None:
        self.turns.append(self.node.world.now_us)
        self.backlog = max(0, self.backlog - 1)

    def add(self, items: int = 1) -> None:
        """New work comes in."""
        self.backlog += items
        self.wakeup_for_work()


class Clock(ServiceThread):
    """Ticks whether there is work or not."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, period_ms=10)
        self.turns: list[int] = []

    def tick(self) -> None:
        self.turns.append(self.node.world.now_us)


def test_an_idle_service_arms_no_timer(world: World, node: Node) -> None:
    Reput(node).start()
    world.run_for(60_000_000)
    assert world.slice_no == 1
    assert world.heap == []


def test_new_work_is_done_at_the_next_tick_of_the_services_own_grid(world: World, node: Node) -> None:
    service = Reput(node)
    world.run_for(3_000)
    service.start()
    world.run_for(34_000)
    service.add()
    world.run_for(100_000)
    assert service.turns == [43_000]


def test_a_service_with_work_turns_at_every_tick(world: World, node: Node) -> None:
    service = Reput(node)
    service.start()
    world.run_for(5_000)
    service.add(3)
    world.run_for(100_000)
    assert service.turns == [10_000, 20_000, 30_000]


def test_work_that_comes_while_a_tick_is_armed_arms_no_second_one(world: World, node: Node) -> None:
    service = Reput(node)
    service.start()
    world.run_for(1_000)
    service.add()
    service.add()
    slices = world.slice_no
    world.run_for(100_000)
    assert service.turns == [10_000, 20_000]
    assert world.slice_no == slices + 2


def test_a_wake_up_turns_the_loop_at_once(world: World, node: Node) -> None:
    service = Reput(node)
    service.start()
    world.run_for(5_000)
    service.wakeup()
    world.run_for(0)
    assert service.turns == [5_000]


def test_a_wake_up_between_two_ticks_does_not_move_the_grid(world: World, node: Node) -> None:
    service = Clock(node)
    service.start()
    world.run_for(14_000)
    service.wakeup()
    service.wakeup()
    world.run_for(16_000)
    assert service.turns == [10_000, 14_000, 20_000, 30_000]


def test_a_wake_up_that_comes_while_the_service_works_is_not_lost(world: World, node: Node) -> None:
    class Busy(ServiceThread):
        async def run(self) -> None:
            while not self.stopped:
                await self.wait_for_running()
                turns.append(self.node.world.now_us)
                await self.node.sleep(5)

    turns: list[int] = []
    service = Busy(node, period_ms=1_000)
    service.start()
    world.run_for(0)
    service.wakeup()
    world.run_for(2_000)
    service.wakeup()
    world.run_for(100_000)
    assert turns == [0, 5_000]


def test_a_service_that_is_shut_down_ends_at_once_and_turns_a_last_time(world: World, node: Node) -> None:
    """As in Java: shutdown wakes the loop, whose body runs once more before it looks at `stopped`."""
    service = Clock(node)
    service.start()
    world.run_for(14_000)
    service.shutdown()
    world.run_for(100_000)
    assert service.turns == [10_000, 14_000]
    assert not node.life.tasks


def test_an_idle_service_that_is_shut_down_ends_too(world: World, node: Node) -> None:
    service = Reput(node)
    service.start()
    world.run_for(14_000)
    service.shutdown()
    world.run_for(0)
    assert not node.life.tasks


def test_a_service_can_be_started_again_with_a_grid_of_its_own(world: World, node: Node) -> None:
    service = Clock(node)
    service.start()
    world.run_for(13_000)
    service.shutdown()
    world.run_for(1_000)
    service.turns.clear()
    service.start()
    world.run_for(21_000)
    assert service.turns == [24_000, 34_000]


def test_waking_a_service_that_was_never_started_is_harmless(world: World, node: Node) -> None:
    service = Reput(node)
    service.wakeup()
    service.wakeup_for_work()
    assert not world.step()


def test_a_service_woken_often_leaves_no_pile_of_dead_entries(world: World, node: Node) -> None:
    service = Clock(node)
    service.period_ms = 60_000
    service.start()
    for _ in range(10_000):
        service.wakeup()
        world.run_for(1)
    assert len(world.heap) < 3_000


class Alarm(ServiceThread):
    """Turns at the first tick at or behind a time that may be moved."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, period_ms=10)
        self.due_us = -1
        self.turns: list[int] = []

    def has_work(self) -> bool:
        return self.due_us >= 0

    def next_tick_us(self) -> int:
        return self.tick_at(max(self.due_us, self.node.now_us() + 1))

    def tick(self) -> None:
        self.turns.append(self.node.world.now_us)
        self.due_us = -1


def test_a_service_that_begins_late_turns_on_the_grid_of_an_earlier_time(world: World, node: Node) -> None:
    service = Reput(node)
    world.run_for(33_000)
    service.start()
    service.set_origin(4_000)
    service.add(2)
    world.run_for(20_000)
    assert service.turns == [34_000, 44_000]


def test_an_alarm_can_be_set_to_an_earlier_time_to_a_later_one_and_off(world: World, node: Node) -> None:
    alarm = Alarm(node)
    alarm.start()
    world.run_for(1_000)
    for due_us in (500_000, 71_000, 95_000):
        alarm.due_us = due_us
        alarm.rearm()
    world.run_for(299_000)
    assert alarm.turns == [100_000]
    alarm.due_us = 400_000
    alarm.rearm()
    alarm.due_us = -1
    alarm.rearm()
    world.run_for(700_000)
    assert alarm.turns == [100_000]
    alarm.due_us = 1_020_000
    alarm.rearm()
    world.run_for(100_000)
    assert alarm.turns == [100_000, 1_020_000]


def test_an_alarm_that_is_due_now_and_set_to_its_own_time_is_not_lost(world: World, node: Node) -> None:
    alarm = Alarm(node)
    alarm.rearm()
    alarm.start()
    alarm.due_us = 20_000
    world.run_for(50_000)
    assert alarm.turns == [20_000]
    alarm.shutdown()
    alarm.due_us = 80_000
    alarm.rearm()
    world.run_for(50_000)
    # The end of a service is its last turn.
    assert alarm.turns == [20_000, 50_000]
