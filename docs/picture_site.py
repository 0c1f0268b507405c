"""A made-up research group, for the pictures in the documentation.

Nothing runs: nodes have the runtime and the accelerators called ``fake``. The people,
the folders and what everything seems to use are made up, too; the rest is real.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import requests

BACKENDAI: Final = [sys.executable, "-m", "backendai_hub.cli"]
PATIENCE: Final = 240.0
CORES: Final = 64

CONFIG: Final = """
c.Launcher.runtime = "fake"
c.BackendAIAgent.accelerators = ["host", "fake"]
c.BackendAIAgent.name = "gpu-01"
c.HostAccelerator.cpu_overcommit = {overcommit!r}
c.FakeAccelerator.model = "Accelerator 80 GB"
c.FakeAccelerator.count = 8
c.FakeAccelerator.memory = 80 << 30
c.FakeRuntime.start_seconds = 0.5
c.HubService.images = [
    {{
        "name": "jupyterlab",
        "title": "JupyterLab (Python 3)",
        "references": {{"fake": "fake"}},
        "minimum": {{"cpu": "0.5", "mem": "512m"}},
        "preferred": {{"cpu": "2", "mem": "2g"}},
    }},
    {{
        "name": "pytorch",
        "title": "PyTorch with CUDA",
        "references": {{"fake": "fake"}},
        "minimum": {{"cpu": "1", "mem": "1g"}},
        "preferred": {{"cpu": "8", "mem": "4g", "cuda.device": "1"}},
        "shmem": "512m",
    }},
    {{
        "name": "r-studio",
        "title": "R and the tidyverse",
        "references": {{"fake": "fake"}},
        "minimum": {{"cpu": "0.5", "mem": "512m"}},
    }},
]
"""
PEOPLE: Final = {
    "mina": ("Mina Park", "user"),
    "grace": ("Grace Okafor", "user"),
    "haruto": ("Haruto Sato", "user"),
    "ploy": ("Ploy Srisuk", "user"),
    "jonas": ("Jonas Weber", "domain-admin"),
    "sora": ("Sora Kim", "superadmin"),
}
PROJECTS: Final = {
    "vision": ("Seeing what satellites see", ["mina", "grace", "haruto"]),
    "language": ("Small models that listen well", ["grace", "ploy"]),
    "teaching": ("Machine learning, autumn term", ["mina", "ploy", "jonas"]),
}
FOLDERS: Final = {
    "mina": ["satellite-tiles", "checkpoints", "notebooks", "scratch"],
    "grace": ["evaluation", "prompts"],
    "haruto": ["radar-2026"],
}
TEXTS: Final = {
    "README.md": "# Satellite tiles\n\nWhat was cut from the scenes of 2026, in squares"
    " of 512 pixels.\n\n- `train/`: 48,000 tiles\n- `labels.csv`: one line each\n",
    "labels.csv": "tile,water,forest,city,cloud\n"
    + "".join(
        f"{n:05},{(n * 37) % 97 / 100:.2f},{(n * 53) % 89 / 100:.2f},"
        f"{(n * 11) % 61 / 100:.2f},{(n * 7) % 43 / 100:.2f}\n"
        for n in range(1, 41)
    ),
    "train.py": "import torch\n\nfrom tiles import Tiles\n\n\ndef main() -> None:\n"
    '    data = Tiles("train")\n    model = torch.nn.Linear(512, 4)\n',
}
RUNNING: Final = [
    ("mina", "segment-512", "vision", "pytorch", ("16", "5g", "2")),
    ("mina", "explore", "vision", "jupyterlab", ("4", "2g", "0")),
    ("grace", "finetune-7b", "language", "pytorch", ("12", "6g", "4")),
    ("haruto", "radar-baseline", "vision", "pytorch", ("8", "3g", "1")),
    ("sora", "look-around", "default", "jupyterlab", ("2", "1g", "0")),
    ("ploy", "homework-4", "teaching", "r-studio", ("2", "1g", "0")),
]
WAITING: Final = [
    ("mina", "sweep-lr", "vision", "pytorch", ("8", "2g", "2")),
    ("grace", "judge-answers", "language", "pytorch", ("16", "2g", "4")),
    ("ploy", "tokenizer", "language", "jupyterlab", ("48", "1g", "0")),
]
JOBS: Final = [
    ("mina", "cut-tiles", "vision", "echo 48,000 tiles; sleep 9"),
    ("mina", "statistics", "vision", "sleep 6; echo mean 0.41; echo deviation 0.08"),
    ("mina", "export-onnx", "vision", "sleep 4; echo no such file: best.pt; exit 2"),
    ("grace", "nightly", "language", "echo all 214 questions answered; exit 0"),
    ("haruto", "despeckle", "vision", "sleep 1; echo done"),
]
STOPPED: Final = ("mina", "warm-up", "vision", "sleep 3600")


class Site:
    """The running platform, asked as one of its people."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self.ready = ready
        self.passwords: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self._tokens: dict[str | None, str] = {None: ready["token"]}
        self._web = requests.Session()
        self._web.trust_env = False

    def ask(self, person: str | None, method: str, path: str, body: Any = None) -> Any:
        """Ask the service; nobody in particular is the first administrator."""
        headers = {"Authorization": f"token {self._tokens[person]}"}
        url = f"{self.ready['url']}services/backendai/api/{path}"
        answer = self._web.request(method, url, json=body, headers=headers, timeout=60)
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.text}")
        return answer.json() if answer.content else None

    def admit(self, person: str) -> None:
        """Let JupyterHub know somebody, who can then be asked for."""
        url = f"{self.ready['url']}hub/api/users/{person}"
        headers = {"Authorization": f"token {self._tokens[None]}"}
        self._web.post(url, headers=headers, timeout=60).raise_for_status()
        made = self._web.post(f"{url}/tokens", headers=headers, json={}, timeout=60)
        made.raise_for_status()
        self._tokens[person] = made.json()["token"]

    def upload(self, person: str, folder: str, path: str, content: bytes) -> None:
        """Send a small file into a folder."""
        name = base64.b64encode(path.encode()).decode()
        url = f"{self.ready['url']}services/backendai/api/folders/{folder}/uploads"
        answer = self._web.post(
            url,
            data=content,
            headers={
                "Authorization": f"token {self._tokens[person]}",
                "Tus-Resumable": "1.0.0",
                "Upload-Length": str(len(content)),
                "Upload-Metadata": f"path {name}",
                "Content-Type": "application/offset+octet-stream",
            },
            timeout=60,
        )
        if not answer.ok:
            raise RuntimeError(f"{path}: {answer.text}")


@contextmanager
def made_up_site() -> Iterator[Site]:
    """Bring the platform up with everything in it, and take it down again."""
    with tempfile.TemporaryDirectory(prefix="backendai-pictures-") as name:
        folder = Path(name) / "data"
        folder.mkdir()
        overcommit = CORES / len(os.sched_getaffinity(0))
        config = CONFIG.format(overcommit=overcommit)
        (folder / "backendai_config.py").write_text(config, "utf-8")
        data_dir = f"--data-dir={folder}"
        up = [*BACKENDAI, "up", data_dir, "--detach", "--json", "--runtime=fake"]
        try:
            done = subprocess.run(up, check=True, stdout=subprocess.PIPE)  # noqa: S603
            site = Site(json.loads(done.stdout))
            furnish(site)
            yield site
        finally:
            down = [*BACKENDAI, "down", data_dir, "--sessions"]
            subprocess.run(down, check=False, stdout=sys.stderr)  # noqa: S603


def furnish(site: Site) -> None:
    """Put everything into the platform."""
    make_people(site)
    make_rules(site)
    make_folders(site)
    make_sessions(site)


def make_people(site: Site) -> None:
    """Make projects, and the people in them."""
    for name, (text, _) in PROJECTS.items():
        body = {"name": name, "description": text, "domain": "default"}
        site.ask(None, "POST", "projects", body)
    for name, (full_name, role) in PEOPLE.items():
        mail = f"{name}@lab.example.org"
        body = {"name": name, "full_name": full_name, "email": mail, "role": role}
        made = site.ask(None, "POST", "accounts", body)
        site.passwords[name] = made["password"]
        site.admit(name)
    for name, (_, members) in PROJECTS.items():
        site.ask(None, "POST", f"projects/{name}/members", {"add": members})


def make_rules(site: Site) -> None:
    """Set limits, and make a registry and a reservation."""
    limits = {
        "max_concurrent_sessions": 8,
        "total_resource_slots": {"cpu": "56", "mem": "16g", "cuda.device": "8"},
    }
    site.ask(None, "PATCH", "keypair-policies/default", limits)
    policy = {
        "name": "students",
        "description": "Courses: two sessions at a time",
        "max_concurrent_sessions": 2,
        "total_resource_slots": {"cpu": "8", "mem": "32g", "cuda.device": "1"},
    }
    site.ask(None, "POST", "keypair-policies", policy)
    registry = {"name": "lab", "url": "https://registry.lab.example.org"}
    site.ask(None, "POST", "registries", registry)
    begin = datetime.now(UTC).replace(hour=9, minute=0, second=0) + timedelta(days=3)
    reservation = {
        "name": "workshop",
        "description": "Autumn school, eight desks",
        "resource_group": "default",
        "kind": "class",
        "amounts": {"cuda.device": "4"},
        "projects": ["teaching"],
        "begins_at": begin.isoformat(),
        "ends_at": (begin + timedelta(hours=6)).isoformat(),
    }
    site.ask(None, "POST", "reservations", reservation)


def make_folders(site: Site) -> None:
    """Make folders with files in them, shared and offered."""
    for person, names in FOLDERS.items():
        for name in names:
            made = site.ask(person, "POST", "folders", {"name": name})
            site.ids[name] = made["id"]
    tiles = site.ids["satellite-tiles"]
    for path, text in TEXTS.items():
        site.upload("mina", tiles, path, text.encode())
    for number in range(1, 8):
        site.upload("mina", tiles, f"train/{number:05}.tif", bytes(4000 * number))
    for name in ("2026-04.ipynb", "2026-05.ipynb"):
        site.upload("mina", site.ids["notebooks"], name, b'{"cells": []}')
    for folder, giver, taker, permission in (
        ("evaluation", "grace", "mina", "ro"),
        ("radar-2026", "haruto", "mina", "rw"),
        ("satellite-tiles", "mina", "grace", "rw"),
        ("satellite-tiles", "mina", "ploy", "ro"),
    ):
        body = {"users": [taker], "permission": permission}
        site.ask(giver, "POST", f"folders/{site.ids[folder]}/invite", body)
    for invitation in site.ask("grace", "GET", "invitations"):
        if invitation["invitee"] == "grace":
            site.ask("grace", "POST", f"invitations/{invitation['id']}/accept", {})


def make_sessions(site: Site) -> None:
    """Ask for sessions: some run, some wait, some are over."""
    for person, name, project, command in (*JOBS, STOPPED):
        body = {
            "name": name,
            "project": project,
            "image": "jupyterlab",
            "type": "batch",
            "startup_command": command,
            "slots": {"cpu": "1", "mem": "2g"},
        }
        _ask_for(site, person, body)
    person, stopped, *_ = STOPPED
    _await(site, [stopped], "RUNNING")
    site.ask(person, "POST", f"sessions/{site.ids[stopped]}/terminate", {})
    over = [job[1] for job in (*JOBS, STOPPED)]
    _await(site, over, "TERMINATED", "ERROR", "CANCELLED")
    for chosen, statuses in ((RUNNING, ("RUNNING",)), (WAITING, ("PENDING",))):
        for person, name, project, image, (cpu, mem, devices) in chosen:
            slots = {"cpu": cpu, "mem": mem, "cuda.device": devices}
            if devices == "0":
                del slots["cuda.device"]
            body: dict[str, Any] = {"name": name, "project": project, "image": image}
            body["slots"] = slots
            if name == "segment-512":
                body["mounts"] = [{"folder": site.ids["satellite-tiles"]}]
            _ask_for(site, person, body)
        _await(site, [one[1] for one in chosen], *statuses)


def _ask_for(site: Site, person: str, body: dict[str, Any]) -> None:
    site.ids[body["name"]] = site.ask(person, "POST", "sessions", body)["id"]


def _await(site: Site, names: list[str], *statuses: str) -> None:
    deadline = time.monotonic() + PATIENCE
    for name in names:
        while True:
            session = site.ask(None, "GET", f"sessions/{site.ids[name]}")
            if session["status"] in statuses:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} is {session['status']}")
            time.sleep(0.2)
