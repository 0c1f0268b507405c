"""How a kernel hears of clicks while a cell runs: in a thread of its own."""

from __future__ import annotations

import ipywidgets as widgets


def hear_while_busy(widget: widgets.Widget) -> None:
    """Let what is done to *widget*, or in it, be heard where the page sends it.

    Pages send it to a subshell, which answers while a cell runs. ipykernel 7.4 hands it
    to whatever has changed the widget last instead, for cells that await an answer. For
    us that is most often a cell that runs: a click would wait for its end, and nothing
    awaits a click. Other kernels do not ask where to send it, and are left alone.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = lambda _said, sent_to: sent_to  # noqa: SLF001
    for child in getattr(widget, "children", ()):
        hear_while_busy(child)
