"""Live charts in JupyterLab: Bokeh draws them once, and new numbers reach its sources while a cell plays."""

from __future__ import annotations

from .notebook_page import Notebook, NotebookPage

MAKE = """from mqlab.scenarios import get
from mqlab_widgets.world_charts import WorldCharts
lab = get("rebalance").build(7)
live = WorldCharts(lab).live()
live"""
NEWEST_S = """async () => {
    const [bokeh] = await Promise.all([...globalThis.mqlabBokeh.values()]);
    return bokeh.documents.map(one => one.get_model_by_name("Throughput 0")?.data.x.at(-1) ?? 0).at(-1);
}"""


def drawn(notebooks: NotebookPage) -> Notebook:
    notebook = notebooks.open("charts.ipynb", [MAKE, "_ = lab.run_for(seconds=20)"])
    notebook.run_cell(0)
    notebook.cell(0).locator(".bk-Figure").nth(4).wait_for()
    return notebook


def test_new_numbers_reach_the_charts_that_are_drawn_already(notebooks: NotebookPage) -> None:
    notebook = drawn(notebooks)
    figure = notebook.cell(0).locator(".bk-GridPlot").element_handle()
    before_s = notebooks.page.evaluate(NEWEST_S)
    notebook.run_cell(1)
    notebooks.page.wait_for_function(f"async before => (await ({NEWEST_S})()) > before + 19", arg=before_s)
    assert figure is not None
    assert figure.evaluate("element => element.isConnected")
    notebook.close()


def test_the_static_picture_gives_way_to_bokeh(notebooks: NotebookPage) -> None:
    notebook = drawn(notebooks)
    assert notebook.cell(0).get_by_role("img", name="The world in numbers").count() == 0
    notebook.close()
