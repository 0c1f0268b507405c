"""Sessions and folders in a notebook: to look at, to click, and to program with.

    from backendai_lab import folders, sessions

What is shown is made of ipywidgets where there is a front end for them, and of plain
tables elsewhere; what is programmed with is the same in both.
"""

from backendai_lab.notebook.folders import Folders, NotebookFolder
from backendai_lab.notebook.link import Link
from backendai_lab.notebook.sessions import NotebookSession, Sessions

__all__ = ["Folders", "Link", "NotebookFolder", "NotebookSession", "Sessions"]
