"""The pages that marking and `mqlab corpus` write, from the templates that lie here. What is put in is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from mqlab.labs.extra import extra


def rendered(name: str, **values: Any) -> str:
    """The page NAME.html.j2 with these values, as text; a value that is missing is an error."""
    page: str = _templates().get_template(f"{name}.html.j2").render(values)
    return page


@cache
def _templates() -> Any:
    jinja2 = extra("jinja2")
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
