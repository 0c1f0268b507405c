"""Importing what a program is made of, once, at the start of its process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def imports() -> Iterator[None]:
    """Look for no garbage meanwhile, and afterwards not among what was imported.

    None of it is garbage: looking for it again and again, while ever more of it comes,
    takes a quarter of the time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
