"""How a notebook shows something: by widgets, or by what needs none."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from backendai_lab.notebook.plain import Table, write_html, write_text


def has_front_end(environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether somebody looks at this kernel through a page that has widgets.

    A kernel cannot ask. Jupyter Server names the notebook to the kernels it starts for
    people, and editors name themselves; a kernel that runs a notebook from a command
    has neither. ``BACKENDAI_WIDGETS`` is 1 or 0 where that is wrong.
    """
    forced = environ.get("BACKENDAI_WIDGETS")
    if forced in {"0", "1"}:
        return forced == "1"
    return bool(environ.get("JPY_SESSION_NAME") or environ.get("VSCODE_PID"))


class Tabular(ABC):
    """Something that is a table wherever there are no widgets."""

    @abstractmethod
    def tabulate(self) -> tuple[Table, str]:
        """Return the table, and what stands in the place of an empty one."""

    def __repr__(self) -> str:
        return write_text(*self.tabulate())

    def _repr_html_(self) -> str:
        return write_html(*self.tabulate())

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        table, empty = self.tabulate()
        return {
            "text/plain": write_text(table, empty),
            "text/html": write_html(table, empty),
        }
