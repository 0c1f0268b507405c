"""A program: use a panel while a real kernel runs another cell.

A name is typed into its form, and a row's button is pressed. It prints what that cell
printed. All goes to a subshell of the kernel, as pages send it.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

PREPARE = """
from backendai_lab import sessions
panel = sessions.panel()
job = sessions.create("jupyterlab", command="sleep 600", cpu=0.5, wait=True)
print(panel.row(job.id)._stop.comm.comm_id, panel.form.name.comm.comm_id)
"""
BUSY = """
import threading, time
pressed = threading.Event()

def look(change):
    if change["new"][job.id].status == "TERMINATING":
        pressed.set()

sessions.model.observe(look, "sessions")
print("busy", flush=True)
print("TERMINATING" if pressed.wait(60) else "nothing was heard", flush=True)
print("at", time.time(), flush=True)
print("typed", panel.form.name.value, flush=True)
print("cell ends", flush=True)
"""
TYPED: Final = {"method": "update", "state": {"value": "next"}, "buffer_paths": []}
PRESSED: Final = {"method": "custom", "content": {"event": "click"}}


def run_cell(client: BlockingKernelClient, code: str) -> str:
    printed: list[str] = []

    def keep(message: dict[str, Any]) -> None:
        printed.append(message["content"].get("text", ""))

    reply = client.execute_interactive(code, timeout=120, output_hook=keep)
    assert reply["content"]["status"] == "ok", reply["content"]
    return "".join(printed)


def open_subshell(client: BlockingKernelClient) -> str:
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    reply = client.control_channel.get_msg(timeout=30)
    return str(reply["content"]["subshell_id"])


def tell(
    client: BlockingKernelClient, comm: str, subshell: str, data: dict[str, Any]
) -> None:
    message = client.session.msg("comm_msg", {"comm_id": comm, "data": data})
    message["header"]["subshell_id"] = subshell
    client.shell_channel.send(message)


def click_while_busy(client: BlockingKernelClient) -> list[str]:
    stop, name = run_cell(client, PREPARE).split()
    subshell = open_subshell(client)
    cell = client.execute(BUSY)
    words: list[str] = []
    pressed_at = 0.0
    while "cell ends" not in words:
        message = client.get_iopub_msg(timeout=90)
        if message["parent_header"].get("msg_id") != cell:
            continue
        if message["msg_type"] == "error":
            raise AssertionError("\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "stream":
            words += message["content"]["text"].split("\n")
            if "busy" in words:
                words.remove("busy")
                pressed_at = time.time()
                tell(client, name, subshell, TYPED)
                tell(client, stop, subshell, PRESSED)
    heard, at, *rest = filter(None, words)
    waited = 1000 * (float(at.removeprefix("at ")) - pressed_at)
    return [heard, *rest, f"after {waited:.0f} ms"]


def main() -> None:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        sys.stdout.write("\n".join(click_while_busy(client)) + "\n")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
