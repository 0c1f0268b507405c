"""Writes the phrase book: every sentence of the service that people get to read.

The service speaks English; the pages find the template that a sentence was made from
and say it in their reader's language. ``python labextension/scripts/phrases.py`` reads
the templates from the code and writes them, by source file, to ``phrases/en.json``
beside the pages' other texts; ``--check`` tells whether what is there is what would be
written, and ``--missing ko`` shows what a language still lacks.

A new sentence needs nothing but this to be run, and its translations in
``phrases/ko.json``, ``ja.json`` and ``th.json``. A room or file that no user hears of
is left out below, with the reason why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from templates import PLACE, read_templates

ROOT: Final = Path(__file__).resolve().parent.parent.parent
BOOK: Final = ROOT / "labextension" / "packages" / "ui" / "src" / "i18n" / "phrases"

ROOMS: Final = (
    "backendai_hub/core",
    "backendai_hub/api",
    "backendai_hub/scheduling",
    "backendai_hub/operations",
    "backendai_hub/db",
    "backendai_hub/handlers",
    "backendai_hub/storage",
    "backendai_hub/safefs",
    "backendai_hub/registries",
    "agent/backendai_agent",
)

# What is left out, each for its reason.
_SILENT: Final = {
    # Read by operators in logs, in a terminal, or not at all.
    "backendai_hub/core/configuration.py",
    "backendai_hub/core/loop_watch.py",
    "backendai_hub/db/chain.py",
    "backendai_hub/db/engine.py",
    "backendai_hub/db/invariants.py",
    "backendai_hub/db/leader.py",
    "backendai_hub/db/migrate.py",
    "backendai_hub/db/migrations",
    "backendai_hub/db/tables",
    "backendai_hub/handlers/matrix.py",
    "backendai_hub/handlers/metrics.py",
    "backendai_hub/handlers/spec.py",
    "backendai_hub/storage/configuration.py",
    "backendai_hub/storage/drivers",
    # Between processes of ours: nodes, workers and the router ask, nobody reads it.
    "backendai_hub/api/agents.py",
    "backendai_hub/core/measures.py",
    "backendai_hub/operations/authority.py",
    "backendai_hub/storage/connection.py",
    "backendai_hub/storage/process.py",
    # Mistakes of ours in the plan, which end in the log.
    "backendai_hub/core/ids.py",
    "backendai_hub/scheduling/cluster.py",
    "backendai_hub/scheduling/held.py",
    "backendai_hub/scheduling/ordering.py",
    "backendai_hub/scheduling/shares.py",
    # Traces are simulated with the command line.
    "backendai_hub/scheduling/scenario.py",
    "backendai_hub/scheduling/trace.py",
}

# Of the agent, only what becomes the reason of a session or an image, or the note of a
# node.
_HEARD: Final = {
    f"agent/backendai_agent/{name}.py"
    for name in (
        "accelerators/cuda",
        "actions",
        "image_keeper",
        "image_plan",
        "inventory",
        "jobs",
        "mounts",
        "mounts_plan",
        "mounts_program",
        "preparation",
        "reconcile",
        "runner",
        "runtimes/docker",
        "runtimes/docker_clusters",
        "runtimes/docker_config",
        "runtimes/docker_engine",
        "runtimes/docker_facts",
        "runtimes/docker_folders",
        "runtimes/docker_images",
        "runtimes/docker_people",
        "runtimes/fake_jobs",
        "runtimes/identities",
        "runtimes/places",
        "runtimes/process",
        "runtimes/process_limits",
        "runtimes/process_limits_probe",
        "runtimes/process_network",
        "runtimes/process_node",
        "runtimes/process_plain",
        "runtimes/process_preparation",
        "runtimes/process_tiers",
        "runtimes/process_view",
    )
}

# What stands in places of templates, and is not written where it is read here.
WORDS: Final = (
    *("domain", "project", "user", "keypair", "registry", "image", "folder", "preset"),
    *("keypair-policy", "user-policy", "project-policy", "resource-group"),
    *("reservation", "slot-type", "session", "node", "nodes", "file", "link"),
    *("domain-admin", "superadmin", "monitor", "active", "inactive"),
    *("ready", "performing", "cloning", "mounted", "error", "delete-pending"),
    *("delete-ongoing", "delete-complete", "delete-error", "pending", "accepted"),
    *("rejected", "canceled", "create", "remove", "clone", "move", "copy", "extract"),
    *("empty-trash", "scan", "interactive", "batch", "sessions", "drained"),
    *("ALIVE", "SUSPECT", "LOST"),
    # What keeps something in use, counted.
    *("{count} users", "{count} projects", "{count} keypairs", "{count} images"),
    *("{count} nodes", "{count} presets", "{count} live sessions"),
)

# Names of locks and tasks, headers, parts of a page that is not ours to translate.
_NOT_SAID: Final = {
    "withdrawals {}",
    "scope {}",
    "storage {}",
    "check storage",
    "check storage {} {}",
    "import encodings, ssl",
    "host permissions",
    "Log in a command line",
    "Log in a command line?",
    "Logged in",
    "(it does not say)",
    "a person confirms this, no script",
    "Basic {}",
    "Bearer {}",
    "default-src 'none'; frame-ancestors 'none'",
    "sandbox; default-src 'none'",
    "text/csv; charset=utf-8",
    "application/jsonl; charset=utf-8",
    "work ALL=(ALL:ALL) NOPASSWD: ALL",
    "cgroup v1",
    "cgroup v2",
    "cgroup v{}",
    "added {}.{}",
    "the password of the registry %s cannot be read",
    "the runtime is not open",
    "ProcessRuntime.data_dir is not set",
}


def list_named() -> list[str]:
    """List the files and rooms that are left out or taken by name."""
    return sorted(_SILENT | _HEARD)


def find_files(rooms: Iterable[str] = ROOMS) -> Iterator[Path]:
    """List the sources whose sentences people get to read."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            silent = any(name == s or name.startswith(f"{s}/") for s in _SILENT)
            if not silent and (not room.startswith("agent/") or name in _HEARD):
                yield path


def read_book() -> dict[str, list[str]]:
    """Read the whole book: each template once, below the first file that says it."""
    book: dict[str, list[str]] = {"words": list(WORDS)}
    known = {*_NOT_SAID, *(PLACE.sub("{}", word) for word in WORDS)}
    for path in find_files():
        templates = read_templates(path.read_text("utf-8"))
        new = []
        for template in templates:
            said = PLACE.sub("{}", template)  # the same, whatever stands in its places
            if said not in known:
                known.add(said)
                new.append(template)
        if new:
            book[path.relative_to(ROOT).as_posix()] = new
    return book


def list_missing(language: str) -> list[str]:
    """List what is in the book and not in *language*."""
    path = BOOK / f"{language}.json"
    there = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return [t for texts in read_book().values() for t in texts if t not in there]


def main(arguments: list[str]) -> int:
    """Write the book, compare it, or show what a language lacks."""
    if arguments[:1] == ["--missing"]:
        sys.stdout.writelines(f"{text}\n" for text in list_missing(arguments[1]))
        return 0
    target = BOOK / "en.json"
    text = json.dumps(read_book(), indent=2, ensure_ascii=False) + "\n"
    if "--check" in arguments:
        same = target.is_file() and target.read_text("utf-8") == text
        if not same:
            sys.stderr.write(
                f"{target} is not what the code says; run"
                " 'python labextension/scripts/phrases.py'\n"
            )
        return 0 if same else 1
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
