"""A panel of settings beside a scenario: change one, and each figure says what it was and what it is now."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MissingExtraError, MqlabError
from mqlab.scenarios import Parameter, get
from mqlab.views import Table
from mqlab_widgets.figures import Figure, figures_of

try:
    import ipywidgets
except ImportError:
    raise MissingExtraError("ipywidgets", "widgets") from None

if TYPE_CHECKING:
    from mqlab import Lab

MOST_EVENTS = 200_000
"""So many events a world may have here; with more of them a change would take minutes."""
PIECE_MS = 100
UNITS = {"_ms": "ms", "_us": "microseconds", "_s": "s"}
LARGEST = 1_000_000


class Worlds:
    """The worlds of one scenario and seed: the one that was, and the one that is. Without any view."""

    def __init__(self, scenario: str, seed: int | str, seconds: float | None) -> None:
        self.scenario = get(scenario)
        self.seed = seed
        self.seconds = self.scenario.seconds if seconds is None else seconds
        self.settings = {parameter.name: parameter.default for parameter in self.scenario.parameters}
        self.lab = self._play(self.settings)
        self.now = self.was = figures_of(self.lab)

    def change(self, name: str, value: Any) -> None:
        """Play the scenario again with one parameter changed. MqlabError if it can't be: all stays as it was."""
        parameter = next(one for one in self.scenario.parameters if one.name == name)
        self._checked(parameter, value)
        changed = self.scenario.check({**self.settings, name: value})
        if changed != self.settings:
            lab = self._play(changed)
            self.was, self.now = self.now, figures_of(lab)
            self.lab, self.settings = lab, changed

    def reset(self) -> None:
        """Play it with all parameters as they are unless told."""
        first = {parameter.name: parameter.default for parameter in self.scenario.parameters}
        if first != self.settings:
            self.lab = self._play(first)
            self.was, self.now, self.settings = self.now, figures_of(self.lab), first

    def table(self) -> Table:
        """Each figure as it was and as it is; those that are 0 in both are left out."""
        pairs = [(was, now) for was, now in zip(self.was, self.now, strict=True) if was.value or now.value]
        rows = [(now.name, str(was), str(now), _difference(was, now)) for was, now in pairs]
        return Table(f"{self.scenario.name}, {self.seconds:g} s", ("figure", "was", "now", "change"), rows)

    @staticmethod
    def _checked(parameter: Parameter, value: Any) -> None:
        if parameter.type == "int" and not least_of(parameter) <= value <= LARGEST:
            raise LearnerError(
                f"{parameter.name}={value:,} is out of bounds",
                f"give a number from {least_of(parameter):,} to {LARGEST:,}",
            )

    def _play(self, settings: dict[str, Any]) -> Lab:
        lab = self.scenario.build(self.seed, parameters=settings)
        until_ms = lab.now_ms + self.seconds * 1_000
        while lab.now_ms < until_ms:
            lab.run_for(ms=min(PIECE_MS, until_ms - lab.now_ms))
            if len(lab.history) > MOST_EVENTS:
                raise LearnerError(
                    f"more than {MOST_EVENTS:,} events happen by {lab.now_ms / 1_000:.1f} s, which takes too long here",
                    "let less happen in a second, or give Settings fewer seconds",
                )
        return lab


def least_of(parameter: Parameter) -> int:
    """The smallest number that a parameter takes: what comes every 0 ms would come for ever in one moment."""
    least = 1 if parameter.name.startswith(("every_", "queues", "threads", "wave", "brokers")) else 0
    default: int = parameter.default
    return min(least, default)


def allowed(parameter: Parameter) -> str:
    """What a parameter takes, in words: "1 to 1,000,000 ms"; "" where its field shows it."""
    if parameter.type == "int":
        return f"{least_of(parameter):,} to {LARGEST:,} {unit_of(parameter.name)}".strip()
    return "a text" if parameter.type == "str" and not parameter.words else ""


def unit_of(name: str) -> str:
    """The unit that a parameter's name ends with; "" for a count or a text."""
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")


def _difference(was: Figure, now: Figure) -> str:
    difference = now._replace(value=now.value - was.value)
    return "" if now.value == was.value else f"{'+' if difference.value > 0 else ''}{difference}"


class Settings(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """The parameters of a scenario as fields: `Settings("demo-slow-consumer")` as the last line of a cell.

    Beside each field stands what it takes. A field is taken with Enter or Tab; then the scenario is played again from
    its beginning with the same seed, for its own time (or `seconds`). `panel.lab` is the world that is shown now, and
    may go into a `Stepper`.
    """

    def __init__(self, scenario: str, *, seed: int | str = 7, seconds: float | None = None) -> None:
        self.worlds = Worlds(scenario, seed, seconds)
        self._fields = {parameter.name: _field(parameter) for parameter in self.worlds.scenario.parameters}
        self._errors = {name: ipywidgets.HTML() for name in self._fields}
        self._table = ipywidgets.HTML()
        self._setting_back = False
        rows = []
        for parameter in self.worlds.scenario.parameters:
            field = self._fields[parameter.name]
            field.observe(self._changed, "value")
            about = f"{allowed(parameter)} (unless told: {parameter.default!r})".strip()
            note = ipywidgets.HTML(f'<span style="opacity:.75">{escape(about)}</span>')
            rows.append(ipywidgets.HBox([field, note, self._errors[parameter.name]]))
        back = ipywidgets.Button(description="As it was at first")
        back.on_click(self._back)
        summary = ipywidgets.HTML(f"<b>{escape(self.worlds.scenario.summary)}</b>")
        super().__init__([summary, *rows, back, self._table])
        self._show()

    @property
    def lab(self) -> Lab:
        """The world with the settings of now."""
        return self.worlds.lab

    def change(self, **settings: Any) -> Settings:
        """Fill these fields, one after the other, as a hand would; the panel itself."""
        for name, value in settings.items():
            if name not in self._fields:
                raise LearnerError(f"there is no field {name!r}", f"there are: {', '.join(self._fields)}")
            field = self._fields[name]
            if isinstance(field, ipywidgets.Dropdown) and value not in field.options:
                raise LearnerError(f"{name}={value!r} can't be chosen", f"choose among {', '.join(field.options)}")
            field.value = value
        return self

    def _changed(self, change: Any) -> None:
        if self._setting_back:
            return
        name = next(name for name, field in self._fields.items() if field is change["owner"])
        for error in self._errors.values():
            error.value = ""
        try:
            self.worlds.change(name, change["new"])
        except (MqlabError, ValueError, TypeError) as wrong:
            words = escape(". ".join(line.strip() for line in str(wrong).splitlines()))
            self._errors[name].value = f'<span role="alert" style="color:#B23C00">{words}</span>'
        self._show()

    def _back(self, _: object) -> None:
        """All parameters as they are unless told."""
        scenario = self.worlds.scenario
        self._setting_back = True
        try:
            for parameter in scenario.parameters:
                self._fields[parameter.name].value = parameter.default
        finally:
            self._setting_back = False
        for error in self._errors.values():
            error.value = ""
        self.worlds.reset()
        self._show()

    def _show(self) -> None:
        self._table.value = self.worlds.table()._repr_html_()

    def __repr__(self) -> str:
        return f"<Settings: {self.worlds.scenario.name}>"

    def _repr_mimebundle_(self, **given: Any) -> Any:
        """The widget, and beside it the table as it stands, which is what a page without a kernel keeps."""
        bundle: Any = super()._repr_mimebundle_(**given)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        table = self.worlds.table()
        return {**data, "text/html": table._repr_html_(), "text/plain": f"{self!r}\n{table}"}, metadata


def _field(parameter: Parameter) -> Any:
    """The field of a parameter; its description is its real name."""
    look = {"description": parameter.name, "style": {"description_width": "12em"}}
    if parameter.type == "bool":
        return ipywidgets.Checkbox(value=parameter.default, indent=True, **look)
    if parameter.type == "int":
        return ipywidgets.IntText(value=parameter.default, continuous_update=False, **look)
    if parameter.words:
        return ipywidgets.Dropdown(options=parameter.words, value=parameter.default, **look)
    return ipywidgets.Text(value=str(parameter.default), continuous_update=False, **look)
