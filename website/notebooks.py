"""From a lab's notebook to a page: with its outputs and saved pictures, and what comes of a bet behind a click."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import DictLoader

from mqlab.labs.extra import extra

_TEMPLATE = """
{%- extends 'basic/index.html.j2' -%}
{%- block in_prompt -%}{%- endblock in_prompt -%}
{%- block output_area_prompt -%}{%- endblock output_area_prompt -%}
{%- block empty_in_prompt -%}{%- endblock empty_in_prompt -%}
{%- block output_group -%}
{%- if cell.metadata.get('jupyter', {}).get('outputs_hidden') -%}
<details class="bet"><summary>What came of it (bet first)</summary>{{ super() }}</details>
{%- else -%}{{ super() }}{%- endif -%}
{%- endblock output_group -%}
"""
_SVG_IMAGE = re.compile(r'<img src="data:image/svg')
_WIDE_TABLE = re.compile(r"(<table>.*?</table>)", re.DOTALL)
_ANCHOR_SIGN = re.compile(r'<a class="anchor-link"[^>]*>¶</a>')


def lab_to_html(notebook: Path, views: dict[int, str]) -> str:
    """The body of a lab's page; `views` has the pictures of its live views by the number of their code cell."""
    nbformat = extra("nbformat")
    read = nbformat.read(notebook, as_version=4)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    for at, html in views.items():
        code[at].outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    body, _ = _exporter().from_notebook_node(read)
    body = _WIDE_TABLE.sub(r'<div class="wide">\1</div>', body)
    return _ANCHOR_SIGN.sub("", _SVG_IMAGE.sub('<img alt="What the cell above shows" src="data:image/svg', body))


@cache
def _exporter() -> Any:
    templates = [DictLoader({"lab.html.j2": _TEMPLATE})]
    return extra("nbconvert").HTMLExporter(extra_loaders=templates, template_file="lab.html.j2")
