"""What `backendai up` says when everything answers."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.launcher.bring_up import Ready
from backendai_hub.launcher.report import show_ready


def ready(**changes: Any) -> Ready:
    fields = {
        "url": "http://127.0.0.1:8000/",
        "admin": "admin",
        "password": None,
        "token": None,
        "runtime": None,
        "isolation": None,
        "data_dir": "/data",
    }
    return Ready(**{**fields, **changes})


def test_a_storage_host_that_nobody_may_use_is_told_with_what_to_do(
    capsys: pytest.CaptureFixture[str],
):
    show_ready(ready(), version="1", foreground=True)
    assert "storage host" not in capsys.readouterr().out
    show_ready(ready(closed_hosts=["local"]), version="1", foreground=True)
    told = capsys.readouterr().out
    assert "nobody may use the storage host local yet" in told
    command = "admin domain update default --allowed-vfolder-hosts 'local=*'"
    assert command in told
