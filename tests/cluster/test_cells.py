"""A notebook that somebody has open shows a bar in each cell in which Spark works; one that a program runs, none."""

from __future__ import annotations

from jupyter_client.manager import start_new_kernel

BEGIN = "from mqlab_spark import session, worlds\nspark = session(master='local[1]', driver_memory='512m')"
JOB = "print(worlds(spark, 'async-send', '0-15').count() > 0)"


def test_cells_in_which_spark_works_show_a_bar() -> None:
    manager, client = start_new_kernel()

    def shown(code: str, *, somebody_looks: bool) -> list[str]:
        seen: list[str] = []

        def note(message: dict[str, object]) -> None:
            content = message["content"]
            assert isinstance(content, dict)
            if message["msg_type"] == "display_data":
                seen.append(content["data"]["text/plain"])
            elif message["msg_type"] in ("error", "comm_close"):
                seen.append(str(message["msg_type"]))

        reply = client.execute_interactive(code, allow_stdin=somebody_looks, output_hook=note, timeout=300)
        assert reply["content"]["status"] == "ok"
        return seen

    try:
        shown(BEGIN, somebody_looks=True)
        bars = shown(JOB, somebody_looks=True)
        nothing = shown("1 + 1", somebody_looks=True), shown(JOB, somebody_looks=False)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert len(bars) == 2
    assert "tasks" in bars[0]
    assert bars[1] == "comm_close"
    assert nothing == ([], [])
