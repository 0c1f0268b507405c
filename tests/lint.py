"""Everything that is checked without running the product; works offline.

The slow checks run side by side. Exit code 1 if one of them complains.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PAGES = ROOT / "labextension"
# Node may have been installed beside Python.
PATH = f"{BIN}:{os.environ['PATH']}"


@dataclass(frozen=True)
class Check:
    name: str
    argv: list[str]
    folder: Path = ROOT


def checks() -> Iterator[Check]:
    yield Check("ruff check", [f"{BIN}/ruff", "check", "--quiet"])
    yield Check("ruff format", [f"{BIN}/ruff", "format", "--check", "--quiet"])
    yield Check("types", [f"{BIN}/mypy", "--no-error-summary"])
    yield Check("layers", [f"{BIN}/lint-imports", "--no-logo"])
    if find_spec("backendai_hub.handlers.spec"):
        spec = [sys.executable, "-m", "backendai_hub.handlers.spec", "--check"]
        yield Check("api description", spec)
        roles = [sys.executable, "-m", "backendai_hub.handlers.matrix", "--check"]
        yield Check("roles of routes", roles)
    book = [sys.executable, "labextension/scripts/phrases.py", "--check"]
    yield Check("phrase book", book)
    if find_spec("sphinx"):
        build = ["-q", "-W", "--keep-going", "docs/source", "docs/build/html"]
        yield Check("documentation", [f"{BIN}/sphinx-build", *build])
    npm = shutil.which("npm", path=PATH)
    if npm and (PAGES / "node_modules").is_dir():
        yield Check("pages", [npm, "run", "--silent", "check"], PAGES)
        if "--with-tests" in sys.argv:
            yield Check("pages' tests", [npm, "test", "--silent"], PAGES)


def run(check: Check) -> tuple[Check, int, str, float]:
    begun = time.monotonic()
    environ = os.environ | {
        "PATH": PATH,
        "PYTHONPATH": f"{ROOT}:{ROOT}/agent:{ROOT}/labextension",
    }
    done = subprocess.run(
        check.argv,
        cwd=check.folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return check, done.returncode, done.stdout, time.monotonic() - begun


def main() -> int:
    failed = False
    with ThreadPoolExecutor(max_workers=2) as pool:
        for check, code, output, took in pool.map(run, list(checks())):
            sign = "✗" if code else "✓"
            print(f"{sign} {check.name} ({took:.1f} s)", file=sys.stderr, flush=True)
            if code:
                failed = True
                print(output, file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
