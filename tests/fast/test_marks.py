"""What is marked before compiling, and what is refused because compiled code would not see it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mqlab.fast.marks import MARK, NotCompilable, classes_of, classes_to_mark, enums_of, mark, mark_tree

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


def test_an_attribute_with_a_type_in_two_compiled_classes_is_refused_by_name(tmp_path: Path) -> None:
    root = tree(tmp_path, "class Mine(Queue):\n    def __init__(self) -> None:\n        self.unit_size: int = 46\n")
    assert mark_tree(root, frozenset({"part.ground"})) == 2
    with pytest.raises(NotCompilable, match=r"part\.heir\.Mine gives a type to unit_size, .* part\.ground\.Ground"):
        mark_tree(root, frozenset({"part.ground", "part.heir"}))


def test_names_in_capitals_are_constants_whatever_their_value_but_members_and_types_are_none() -> None:
    text = (
        "from __future__ import annotations\n"
        "A = 1\n"
        "T = TypeVar('T')\n"
        "b = 2\n"
        "HEAD = struct.Struct('>i')  # über\n"
        "CODES: dict[str, int] = {\n    'a': 1,\n}\n"
        "class E(Enum):\n    X = 1\n"
    )
    assert mark(text, [], {}) == (
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING, Final\n"
        "if TYPE_CHECKING: from mypy_extensions import mypyc_attr\n"
        "A: Final = 1\n"
        "T = TypeVar('T')\n"
        "b = 2\n"
        "HEAD: Final = struct.Struct('>i')  # über\n"
        "CODES: Final[dict[str, int]] = {\n    'a': 1,\n}\n"
        "class E(Enum):\n    X = 1\n"
    )


def test_a_member_that_a_function_asks_for_is_a_constant_and_a_number_where_it_is_compared() -> None:
    enums = enums_of(ast.parse("class Code(IntEnum):\n    OK = 0\n    BUSY = 2\n\nclass Plain:\n    OK = 0\n"))
    assert enums == {"Code": {"OK": 0, "BUSY": 2}}
    text = (
        "from __future__ import annotations\n"
        "from codes import Code, Plain\n"
        "TABLE = {Code.OK: Plain.OK}\n"
        "def answer(code: int, default: int = Code.OK) -> int:\n"
        "    return Code.BUSY if code == Code.BUSY or code in (Code.OK, Plain.OK) else Code.OK.value\n"
    )
    marked = mark(text, [], enums)
    assert marked.splitlines()[3:] == [
        "from codes import Code, Plain",
        "_Code_OK: Final = Code.OK",
        "_Code_BUSY: Final = Code.BUSY",
        "TABLE: Final = {Code.OK: Plain.OK}",
        "def answer(code: int, default: int = Code.OK) -> int:",
        "    return _Code_BUSY if code == 2 or code in (_Code_OK, Plain.OK) else _Code_OK.value",
    ]


def test_a_class_with_a_method_that_is_left_to_its_heirs_is_marked_with_its_bases() -> None:
    text = "class A:\n    pass\nclass B(A):\n    def do(self) -> None:\n        raise NotImplementedError('do')\n"
    assert classes_to_mark([*classes_of("a", text)], frozenset({"a"})) == {("a", "A"), ("a", "B")}


def test_slots_are_no_values_and_generic_bases_count() -> None:
    ground = classes_of("a", "class Q(Generic[T]):\n    __slots__ = ()\n")
    heir = classes_of("b", "class R(Q[int]):\n    __slots__ = ('x',)\n")
    assert classes_to_mark([*ground, *heir], frozenset({"a"})) == {("a", "Q")}
