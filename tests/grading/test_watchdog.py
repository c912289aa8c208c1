"""What the marker reads of the sockets of what it runs."""

from __future__ import annotations

from mqlab.grading.watchdog import _queued

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = "   0: 0100007F:A0C5 0100007F:B1D2 {} {}:{} 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n"


def test_what_waits_in_both_directions_of_all_sockets_is_added_up() -> None:
    assert _queued(HEAD) == 0
    lines = LINE.format("01", "00000010", "00000001") + LINE.format("01", "00000000", "000F4240")
    assert _queued(HEAD + lines) == 1_000_017


def test_a_socket_that_is_being_connected_holds_nothing_whatever_its_line_says() -> None:
    # As Linux 6.18 has shown it, once in two hundred thousand lines.
    connecting = LINE.format("02", "B933C068", "00000000")
    assert _queued(HEAD + connecting + LINE.format("01", "00000000", "00000005")) == 5
