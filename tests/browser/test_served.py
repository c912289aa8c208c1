"""A world that is served, in a notebook: what a program outside does is seen while no cell runs."""

from __future__ import annotations

from .conftest import STEADY
from .notebook_page import NotebookPage

SERVE = """serving = lab.serve()
serving.name_server"""
SEND = """import subprocess, sys
program = '''
import socket, sys
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import SendMessageRequestHeader
header = SendMessageRequestHeader("outside", "FromOutside", "TBW102", 4, 0, 0, 0, 0)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(RemotingCommand.request(RequestCode.SEND_MESSAGE, header, b"from outside").encode())
    connection.recv(1 << 16)
'''
_ = subprocess.Popen([sys.executable, "-c", program, str(serving.ports["broker-a"])])"""


def test_what_a_program_outside_sends_is_seen(notebooks: NotebookPage) -> None:
    quiet = STEADY.replace('get("steady-load").build(7).run_for(seconds=4)', 'get("served").build(7)')
    notebook = notebooks.open("served.ipynb", [quiet, "Stepper(lab)", SERVE, SEND, "serving.close()"])
    for cell in range(3):
        notebook.run_cell(cell)
    viewer = notebook.viewer(1)
    notebook.run_cell(3)
    viewer.until(lambda: "FromOutside" in viewer.twin())
    length = viewer.length
    viewer.until(lambda: viewer.length > length)
    notebook.run_cell(4)
    notebook.close()
