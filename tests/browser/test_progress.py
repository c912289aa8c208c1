"""The bar of a long job in JupyterLab: there while the job runs, gone when it has ended."""

from __future__ import annotations

from playwright.sync_api import expect

from .notebook_page import NotebookPage

BEGIN = """from mqlab import progress
progress.DELAY_S = progress.DRAW_EVERY_S = 0
job = progress.bar("worlds", 1000)
job.__enter__().to(421, "3,110 events")"""


def test_a_bar_says_how_much_is_done_until_all_is(loaded: NotebookPage) -> None:
    notebook = loaded.open("progress.ipynb", [BEGIN, "job.__exit__(None, None, None)"])
    notebook.run_cell(0)
    cell = notebook.cell(0)
    expect(cell.locator(".progress-bar")).to_have_count(1)
    expect(cell).to_contain_text("421\u2007of\u20071,000\u2007worlds")
    expect(cell).to_contain_text("3,110\u2007events")
    notebook.run_cell(1)
    expect(cell.locator(".progress-bar")).to_have_count(0)
    assert not notebook.errors()
    notebook.close()
