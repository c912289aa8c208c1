"""A table says the same as text and as HTML."""

from __future__ import annotations

from mqlab.views import Table


def test_numbers_stand_right_and_texts_left() -> None:
    table = Table("queues", ["topic", "max"], [["a", 1], ["long-name", 200]])
    assert str(table).splitlines() == [
        "queues",
        "topic      max",
        "---------  ---",
        "a            1",
        "long-name  200",
    ]


def test_every_cell_of_the_text_is_in_the_html() -> None:
    table = Table("t", ["a", "b"], [["<x>", True], [None, 2.5]])
    html = table._repr_html_()
    assert "&lt;x&gt;" in html
    assert "yes" in html
    assert "2.5" in html
    assert "<x>" not in html


def test_a_table_without_rows_says_so() -> None:
    table = Table("t", ["a"], [])
    assert "(none)" in str(table)
    assert "(none)" in table._repr_html_()


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    table = Table("t", ["n"], [[n] for n in range(60)], most=10)
    assert str(table).endswith("... and 50 more")
    assert "... and 50 more" in table._repr_html_()
    assert len(table) == 60
