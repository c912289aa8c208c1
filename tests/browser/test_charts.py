"""Live charts in JupyterLab: Bokeh draws them once, and new numbers reach its sources while a cell plays."""

from __future__ import annotations

from playwright.sync_api import expect

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


NOBODY = """from mqlab import ConsumeConcurrentlyStatus, Lab
from mqlab_widgets.world_charts import WorldCharts
lab = Lab(seed=7)
lab.name_server()
lab.broker("broker-a")
lab.create_topic("TopicTest", queues=1)
live = WorldCharts(lab).live()
live"""
SOMEBODY = """consumer = lab.consumer("readers")
consumer.subscribe("TopicTest", "*")
consumer.register_message_listener(lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
await consumer.start()
_ = lab.run_for(seconds=3)"""


def test_a_group_that_comes_later_has_its_name_in_the_legend(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("groups.ipynb", [NOBODY, SOMEBODY])
    notebook.run_cell(0)
    backlog = notebook.cell(0).locator(".bk-Figure").nth(1)
    backlog.wait_for()
    assert backlog.locator(".bk-Legend .bk-label").count() == 0
    notebook.run_cell(1)
    expect(backlog.locator(".bk-Legend .bk-label")).to_have_text("readers")
    expect(backlog.locator(".bk-Legend .bk-label")).to_be_visible()
    notebook.close()
