"""What is marked before compiling, and what is refused because compiled code would not see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.fast.marks import MARK, NotCompilable, classes_of, classes_to_mark, constants, mark, mark_tree

GROUND = """from __future__ import annotations

LIMIT = 3


class Ground:
    PERIOD = 5
    unit_size: int = 20


class Queue(Ground):
    def put(self) -> int:
        return self.unit_size
"""


def tree(tmp_path: Path, heir: str) -> Path:
    root = tmp_path / "part"
    root.mkdir()
    (root / "ground.py").write_text(GROUND)
    (root / "heir.py").write_text(f"from __future__ import annotations\n\nfrom .ground import Queue\n\n\n{heir}")
    return root


def test_a_compiled_class_is_marked_with_its_bases_when_an_interpreted_one_inherits(tmp_path: Path) -> None:
    root = tree(tmp_path, "class Mine(Queue):\n    pass\n")
    assert mark_tree(root, frozenset({"part.ground"})) == 2
    text = (root / "ground.py").read_text()
    assert text.count(MARK) == 2
    assert "LIMIT: Final = 3" in text
    assert "    PERIOD: Final = 5" in text
    compile(text, "ground.py", "exec")
    assert MARK not in (root / "heir.py").read_text()


def test_among_compiled_modules_nothing_is_marked(tmp_path: Path) -> None:
    root = tree(tmp_path, "class Mine(Queue):\n    unit_size = 46\n")
    assert mark_tree(root, frozenset({"part.ground", "part.heir"})) == 0


def test_a_value_that_an_interpreted_subclass_says_anew_is_refused_by_name(tmp_path: Path) -> None:
    root = tree(tmp_path, "class Mine(Queue):\n    unit_size = 46\n")
    with pytest.raises(NotCompilable, match=r"part\.heir\.Mine .* unit_size .* part\.ground\.Ground"):
        mark_tree(root, frozenset({"part.ground"}))


def test_only_plain_values_of_names_in_capitals_are_constants() -> None:
    text = "from __future__ import annotations\nA = 1\nT = TypeVar('T')\nb = 2\nC = A | 4\nclass E(Enum):\n    X = 1\n"
    assert constants(text) == [2, 5]
    assert "C: Final = A | 4" in mark(text, [])


def test_slots_are_no_values_and_generic_bases_count() -> None:
    ground = classes_of("a", "class Q(Generic[T]):\n    __slots__ = ()\n")
    heir = classes_of("b", "class R(Q[int]):\n    __slots__ = ('x',)\n")
    assert classes_to_mark([*ground, *heir], frozenset({"a"})) == {("a", "Q")}
