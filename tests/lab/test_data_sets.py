"""Data sets: made from recipes, the same each time, gone on with after an interruption, and judged by a sealed list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlab import __version__
from mqlab.commands.cli import main
from mqlab.data_sets import CARD, Recipe, Size, file_name, hidden, judge, make, read_recipe, recipes, verify, world
from mqlab.data_sets.pages import SAMPLE, SAMPLES, page
from mqlab.errors import LearnerError

ROOT = Path(__file__).parents[2]
LOST_ORDERS = read_recipe(ROOT / "datasets" / "lost-orders.toml")


def small(recipe: Recipe, worlds: int = 2, checksum: str | None = None) -> Recipe:
    return recipe._replace(sizes={"small": Size(worlds, checksum)})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lost-orders")
    make(small(LOST_ORDERS), "small", out)
    return out


def card_of(directory: Path) -> dict[str, object]:
    return dict(json.loads((directory / CARD).read_text()))


def test_every_recipe_can_be_read_and_says_what_it_is_for() -> None:
    for name, recipe in recipes(ROOT / "datasets").items():
        assert recipe.question.endswith("?"), name
        assert recipe.sizes["small"].checksum


def test_the_samples_are_what_their_cards_say_and_the_pages_what_the_samples_are() -> None:
    known = recipes(ROOT / "datasets")
    samples = ROOT / "datasets" / SAMPLES
    for name, recipe in known.items():
        assert verify(recipe, SAMPLE, samples / name) == card_of(samples / name)["events"]
        assert card_of(samples / name)["checksum"] == recipe.sizes[SAMPLE].checksum
        assert (ROOT / "datasets" / f"{name}.md").read_text("utf-8") == page(recipe, ROOT / "datasets"), (
            "run: mqlab dataset --pages"
        )
    assert {file.name for file in samples.iterdir()} == set(known)
    assert sum(file.stat().st_size for file in samples.rglob("*") if file.is_file()) < 5_000_000


def test_a_page_without_its_sample_says_how_it_is_made(tmp_path: Path) -> None:
    """As in a wheel, which has no samples."""
    recipe = read_recipe(ROOT / "datasets" / "twice.toml")
    with pytest.raises(LearnerError, match=r"mqlab dataset twice sample --out .*samples/twice"):
        page(recipe, tmp_path)


def test_a_sample_is_what_its_command_makes(tmp_path: Path) -> None:
    recipe = read_recipe(ROOT / "datasets" / "twice.toml")
    kept = card_of(ROOT / "datasets" / SAMPLES / "twice")
    assert make(recipe, SAMPLE, tmp_path) == {**kept, "made_by": f"mqlab {__version__}"}


def test_what_is_made_is_what_the_card_says(made: Path) -> None:
    card = card_of(made)
    assert verify(small(LOST_ORDERS), "small", made) == card["events"]
    assert card["worlds"] == 2
    assert card["seeds"] == "0-1"
    lab = world(LOST_ORDERS, 1).play()
    assert len(list(made.glob("*.parquet"))) == 2
    assert card["events"] == len(lab.history) + len(world(LOST_ORDERS, 0).play().history)


def test_a_recipe_may_begin_at_another_seed(made: Path, tmp_path: Path) -> None:
    other = small(LOST_ORDERS, worlds=1)._replace(first_seed=1)
    card = make(other, "small", tmp_path)
    assert card["seeds"] == "1-1"
    assert (tmp_path / file_name(1)).read_bytes() == (made / file_name(1)).read_bytes()
    assert verify(other, "small", tmp_path) == card["events"]
    assert set(card["sealed"]) < set(card_of(made)["sealed"])  # type: ignore[call-overload]


def test_an_interrupted_data_set_is_gone_on_with(made: Path, tmp_path: Path) -> None:
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = (tmp_path / file_name(0)).read_bytes()
    (tmp_path / file_name(1)).write_bytes(whole[: len(whole) // 2])
    (tmp_path / CARD).unlink()
    kept = (tmp_path / file_name(0)).stat().st_mtime_ns
    card = make(small(LOST_ORDERS), "small", tmp_path)
    assert card == card_of(made)
    assert (tmp_path / file_name(0)).stat().st_mtime_ns == kept


def test_a_changed_world_is_noticed(made: Path, tmp_path: Path) -> None:
    for name in (file_name(0), CARD):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    with pytest.raises(LearnerError, match="seed-000001"):
        verify(small(LOST_ORDERS), "small", tmp_path)
    (tmp_path / file_name(1)).write_bytes((made / file_name(0)).read_bytes())
    with pytest.raises(LearnerError, match="not what its card says"):
        verify(small(LOST_ORDERS), "small", tmp_path)


def test_another_checksum_than_the_recipe_s_is_an_error(made: Path) -> None:
    with pytest.raises(LearnerError, match="was expected"):
        make(small(LOST_ORDERS, checksum="0" * 32), "small", made)


def test_answers_are_judged_without_being_told(made: Path) -> None:
    card = card_of(made)
    planted = [
        (seed, *each)
        for seed in range(2)
        for each in hidden(world(LOST_ORDERS, seed).play())
        if each[0] in LOST_ORDERS.sealed
    ]
    assert any(what == "lost" for _, what, _, _ in planted)
    assert judge(card, planted) == {"right": len(planted), "wrong": 0, "missing": 0}
    assert judge(card, [*planted[1:], (0, "lost", "readers", "nothing")]) == {
        "right": len(planted) - 1, "wrong": 1, "missing": 1,
    }  # fmt: skip
    assert not any(key in json.dumps(card) for _, _, _, key in planted)


@pytest.mark.parametrize(
    "text", ["title = ", "title = 'a'", "title='a'\nquestion='b'\nscenario='nope'\n[sizes]\nsmall={worlds=1}",
     "title='a'\nquestion='b'\nscenario='steady-load'\nsealed=['all']\n[sizes]\nsmall={worlds=1}"],
)
def test_a_recipe_that_cannot_be_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(LearnerError):
        recipes(tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["dataset"]) == 0
    assert "lost-orders: Lost orders" in capsys.readouterr().out
    assert main(["dataset", "slow-listener", "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert "checksum f6fedccbb71b9971793994f76092b4e1" in capsys.readouterr().out
    assert main(["dataset", "slow-listener", "--out", str(tmp_path), "--verify"]) == 0
    for wrong in (["nope"], ["steady", "huge"]):
        assert main(["dataset", *wrong]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["dataset", "steady", "--jobs", "0"])
    monkeypatch.chdir(tmp_path)
    assert main(["dataset"]) == 0, "away from a clone the recipes are those that mqlab was installed with"
    assert "lost-orders: Lost orders" in capsys.readouterr().out
