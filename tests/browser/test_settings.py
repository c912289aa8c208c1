"""The panel of settings in a page: a field is changed by keys, and the figures say what was and is."""

from __future__ import annotations

from playwright.sync_api import expect

from .notebook_page import NotebookPage

CELL = 'from mqlab_widgets import Settings\nSettings("demo-slow-consumer", seconds=10)'


def test_a_changed_field_shows_was_and_now_and_a_wrong_one_its_reason(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("settings.ipynb", [CELL])
    notebook.run()
    cell = notebook.cell(0)
    row = cell.get_by_role("row").filter(has_text="pulls that a full consumer put off")
    was = row.get_by_role("cell").nth(2).inner_text()
    field = cell.get_by_label("threshold")
    field.fill("32")
    field.press("Tab")
    expect(row.get_by_role("cell").nth(3)).to_have_text(f"-{was}")
    expect(row.get_by_role("cell").nth(1)).to_have_text(was)
    every = cell.get_by_label("every_ms")
    every.fill("0")
    every.press("Enter")
    expect(cell.get_by_role("alert")).to_contain_text("from 1 to")
    cell.get_by_role("button", name="As it was at first").press("Enter")
    expect(field).to_have_value("4")
    expect(cell.get_by_role("alert")).to_have_count(0)
    notebook.close()
