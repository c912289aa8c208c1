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
    assert f"{machine} (broker) is {state}" in viewer.text("text")


def test_a_fault_without_a_machine_says_what_to_do(viewer: ViewerPage) -> None:
    viewer.button("crash").click()
    viewer.until_said("click a machine on the stage")


def test_a_broker_is_crashed_by_click_and_started_again(viewer: ViewerPage) -> None:
    viewer.machine("broker-b").click()
    expect(viewer.machine("broker-b")).to_contain_class("chosen")
    viewer.button("crash").click()
    state_is(viewer, "broker-b", "down")
    viewer.button("restart").click()
    viewer.button("slice").click()
    state_is(viewer, "broker-b", "running")


def test_a_broker_is_frozen_with_the_keyboard_alone(viewer: ViewerPage) -> None:
    for key, chosen in (("Enter", "broker-a"), (" ", "broker-b")):
        viewer.machine(chosen).focus()
        viewer.page.keyboard.press(key)
        expect(viewer.machine(chosen)).to_contain_class("chosen")
        expect(viewer.machine(chosen)).to_be_focused()
    viewer.button("freeze").focus()
    viewer.page.keyboard.press("Enter")
    state_is(viewer, "broker-b", "frozen")
    viewer.button("thaw").focus()
    viewer.page.keyboard.press("Enter")
    state_is(viewer, "broker-b", "running")


def test_a_link_between_two_machines_is_cut_and_healed(viewer: ViewerPage) -> None:
    viewer.machine("broker-a").click()
    viewer.machine("namesrv-1").click()
    expect(viewer.machine("namesrv-1")).to_contain_class("chosen")
    viewer.button("cut the link").click()
    viewer.root.locator(".mq-stage .wire.cut").first.wait_for(state="attached")
    assert "the link from broker-a to namesrv-1 is cut" in viewer.text("text")
    viewer.button("heal the link").click()
    viewer.root.locator(".mq-stage .wire.cut").first.wait_for(state="detached")
    assert "is cut" not in viewer.text("text")
