"""Breaking a world from the stage: choosing machines by click and by key, faults, links."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .notebook_page import Notebook, NotebookPage, ViewerPage


@pytest.fixture
def viewer(notebooks: NotebookPage, two_brokers: Notebook) -> ViewerPage:
    """The stepper of two_brokers."""
    return two_brokers.viewer(1)


def state_is(viewer: ViewerPage, machine: str, state: str) -> None:
    """The stage says so to the eye and to a screen reader, and so does the text twin."""
    expect(viewer.machine(machine)).to_have_attribute("aria-label", f"{machine}, broker, {state}")
    assert f"{machine} (broker) is {state}" in viewer.twin()


def test_a_broker_is_crashed_by_click_and_started_again(viewer: ViewerPage) -> None:
    viewer.choose("broker-b")
    viewer.do("Crash broker-b")
    state_is(viewer, "broker-b", "down")
    viewer.choose("broker-b")
    assert viewer.root.get_by_role("menuitem", name="Crash broker-b").count() == 0
    viewer.do("Restart broker-b")
    viewer.press("s")
    state_is(viewer, "broker-b", "running")


def test_a_broker_is_frozen_with_the_keyboard_alone(viewer: ViewerPage) -> None:
    keyboard = viewer.page.keyboard
    for key, chosen in (("Enter", "broker-a"), (" ", "broker-b")):
        viewer.machine(chosen).focus()
        keyboard.press(key)
        expect(viewer.root.get_by_role("menuitem", name=f"Crash {chosen}")).to_be_focused()
        keyboard.press("Escape")
        expect(viewer.machine(chosen)).to_be_focused()
        expect(viewer.machine(chosen)).to_contain_class("chosen")
    keyboard.press("Enter")
    expect(viewer.root.get_by_role("menuitem", name="Crash broker-b")).to_be_focused()
    for _ in range(2):
        keyboard.press("ArrowDown")
    expect(viewer.root.get_by_role("menuitem", name="Freeze broker-b")).to_be_focused()
    keyboard.press("Enter")
    state_is(viewer, "broker-b", "frozen")
    viewer.choose("broker-b")
    assert viewer.root.get_by_role("menuitem", name="Freeze broker-b").count() == 0
    viewer.do("Let broker-b go on")
    state_is(viewer, "broker-b", "running")


def test_a_link_between_two_machines_is_cut_and_healed(viewer: ViewerPage) -> None:
    wire = viewer.part("stage").locator('[data-key^="wire:"][data-source="broker-a"][data-target="namesrv-1"]')
    link = "broker-a - namesrv-1"
    wire.focus()
    viewer.page.keyboard.press("Enter")
    viewer.do(f"Cut the link {link}")
    viewer.root.locator(".mq-stage .wire.cut").first.wait_for(state="attached")
    assert "the link from broker-a to namesrv-1 is cut" in viewer.twin()
    wire.focus()
    viewer.page.keyboard.press("Enter")
    assert viewer.root.get_by_role("menuitem", name=f"Cut the link {link}").count() == 0
    viewer.do(f"Heal the link {link}")
    viewer.root.locator(".mq-stage .wire.cut").first.wait_for(state="detached")
    assert "is cut" not in viewer.twin()
