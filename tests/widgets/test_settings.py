"""The panel of settings: one parameter is changed, the world is played anew, and figures say what they were and are."""

from __future__ import annotations

import pytest

from mqlab.errors import LearnerError
from mqlab.scenarios import get
from mqlab_widgets import Settings
from mqlab_widgets.figures import figures_of, percentile
from mqlab_widgets.settings import Worlds, least_of, unit_of

NAME = "demo-slow-consumer"


def value(worlds: Worlds, name: str) -> tuple[float, float]:
    """A figure as it was, and as it is."""
    return next(
        (was.value, now.value) for was, now in zip(worlds.was, worlds.now, strict=True) if was.name.startswith(name)
    )


def test_figures_are_what_the_events_say() -> None:
    lab = get(NAME).play(7)
    figures = {figure.name: figure.value for figure in figures_of(lab)}
    assert figures["pulls that a full consumer put off"] == sum(1 for _ in lab.history.find("FlowControlled")) > 0
    assert figures["sends that succeeded"] == sum(1 for _ in lab.history.find("SendSucceeded"))
    assert figures["listener's calls that ended"] == sum(1 for _ in lab.history.find("ConsumeFinished"))
    stored = {event.unique_key: event.ts_us for event in lab.history.find("MessageStored") if event.topic == "Orders"}
    delays = [(event.ts_us - stored[event.msg_id]) / 1_000 for event in lab.history.find("ConsumeStarted")]
    assert figures["messages stored"] == len(stored)
    assert figures["delay to the listener, 99 of 100 at most"] == percentile(delays, 99)


def test_what_a_listener_gets_again_is_counted_once_for_each_time() -> None:
    lab = get("demo-retry").play(7)
    calls = [(event.group, event.msg_id) for event in lab.history.find("ConsumeStarted")]
    figures = {figure.name: figure.value for figure in figures_of(lab)}
    assert figures["messages that a listener got again"] == len(calls) - len(set(calls)) > 0


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([], 50) == 0
    assert percentile([3.0], 99) == 3
    assert percentile(range(1, 101), 50) == 50
    assert percentile(range(1, 101), 99) == 99


def test_a_change_is_played_and_each_figure_says_what_it_was_and_is() -> None:
    worlds = Worlds(NAME, 7, None)
    assert worlds.was == worlds.now
    worlds.change("threshold", 32)
    was, now = value(worlds, "pulls that a full consumer put off")
    assert was > 0 == now
    assert worlds.lab.origin is not None
    assert worlds.lab.origin.parameters["threshold"] == 32
    row = next(row for row in worlds.table().rows if row[0].startswith("pulls that a full"))
    assert row[3] == f"-{was:,.0f}"


def test_the_same_settings_give_the_same_figures() -> None:
    worlds = Worlds(NAME, 7, None)
    first = worlds.now
    worlds.change("packing_ms", 100)
    assert worlds.now != first
    worlds.change("packing_ms", 400)
    assert worlds.now == first
    assert Worlds(NAME, 7, None).now == first
    assert Worlds(NAME, 8, None).now != first


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [("every_ms", 0, "from 1 to"), ("threshold", -1, "from 0 to"), ("wave", 10_000_000, "from 1 to 1,000,000")],
)
def test_what_is_out_of_bounds_is_refused_and_all_stays(name: str, given: int, said: str) -> None:
    worlds = Worlds(NAME, 7, 5)
    before = (worlds.was, worlds.now, dict(worlds.settings), worlds.lab)
    with pytest.raises(LearnerError, match=said):
        worlds.change(name, given)
    assert (worlds.was, worlds.now, worlds.settings, worlds.lab) == before


def test_a_world_in_which_too_much_happens_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab_widgets.settings.MOST_EVENTS", 5_000)
    worlds = Worlds("rivals", 7, 20)
    with pytest.raises(LearnerError, match="more than 5,000 events"):
        worlds.change("rate_per_minute", 6_000)
    assert worlds.settings["rate_per_minute"] == 60


def test_units_and_least_values_come_from_the_names() -> None:
    assert [unit_of(name) for name in ("packing_ms", "every_us", "hangs_s", "queues", "messages")] == [
        "ms", "microseconds", "s", "", "",
    ]  # fmt: skip
    least = {parameter.name: least_of(parameter) for parameter in get(NAME).parameters}
    assert least["every_ms"] == least["queues"] == 1
    assert least["messages"] == 0


def test_a_field_that_is_changed_changes_the_table_and_a_wrong_one_says_why() -> None:
    panel = Settings(NAME, seconds=10)
    table = panel._table.value
    panel._fields["threshold"].value = 32
    assert panel._table.value != table
    changed = panel._table.value
    panel._fields["every_ms"].value = 0
    assert "give a number from 1" in panel._errors["every_ms"].value
    assert 'role="alert"' in panel._errors["every_ms"].value
    assert panel._table.value == changed
    panel._fields["every_ms"].value = 40
    assert panel._errors["every_ms"].value == ""
    assert panel.lab.origin is not None
    assert panel.lab.origin.parameters["threshold"] == 32


def test_fields_can_be_filled_from_a_cell() -> None:
    panel = Settings(NAME, seconds=5).change(threshold=32, wave=12)
    assert (panel.worlds.settings["threshold"], panel.worlds.settings["wave"]) == (32, 12)
    with pytest.raises(LearnerError, match="no field 'limit'"):
        panel.change(limit=3)


def test_back_to_the_beginning() -> None:
    panel = Settings(NAME, seconds=10)
    first = panel.worlds.now
    panel._fields["threshold"].value = 32
    panel._fields["every_ms"].value = 0
    panel._back(None)
    assert panel.worlds.now == first
    assert panel._fields["threshold"].value == 4
    assert panel._errors["every_ms"].value == ""


def test_each_field_shows_what_it_takes() -> None:
    panel = Settings(NAME, seconds=1)
    rows = {row.children[0].description: row.children for row in panel.children[1:-2]}
    assert "1 to 1,000,000 ms (unless told: " in rows["every_ms"][1].value
    assert "0 to 1,000,000 (unless told: 4)" in rows["threshold"][1].value
    way = Settings("rivals", seconds=1)._fields["way"]
    assert (way.options, way.value) == (("interval", "busy", "short", "long"), "long")


def test_a_text_that_can_not_be_chosen_is_refused() -> None:
    panel = Settings("rivals", seconds=2)
    with pytest.raises(LearnerError, match="choose among interval, busy, short, long"):
        panel.change(way="sideways")
    assert panel.change(way="short").worlds.settings["way"] == "short"


def test_a_default_below_the_least_number_may_be_given_again() -> None:
    attempts = next(one for one in get("always-fails").parameters if one.name == "max_reconsume_times")
    assert least_of(attempts) == attempts.default == -1


def test_a_page_without_a_kernel_keeps_the_table() -> None:
    data, _ = Settings(NAME, seconds=5)._repr_mimebundle_()
    assert data["text/plain"].startswith("<Settings: demo-slow-consumer>")
    assert "was" in data["text/html"]
    assert "messages stored" in data["text/plain"]


def test_an_unknown_scenario_is_named() -> None:
    with pytest.raises(LearnerError, match="no scenario 'nothing'"):
        Settings("nothing")
