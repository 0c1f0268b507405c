"""What a session installs is its own: found by all it starts, gone at its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from process_harness import PREAMBLE, SLEEP, Node, make_spec, open_node, until

from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import ContainerPatch
from backendai_agent.runtimes.process_plain import find_closed

MAIN = "import os; exec(open(os.path.expanduser('~/main.py')).read())"

HELPERS = """
def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr)[-200:])
    return done.stdout.strip()
def pip(*words):
    return run("pip", "--disable-pip-version-check", "-q", *words)
def install(name, version):
    return pip("install", "--no-index", f"./{name}-{version}-py3-none-any.whl")
def ask(code):
    return run("python", "-c", code)
def ask_kernel(code):
    from jupyter_client.manager import start_new_kernel
    manager, client = start_new_kernel(startup_timeout=60)
    try:
        said = []
        client.execute_interactive(code, timeout=60, output_hook=said.append)
        return "".join(m["content"].get("text", "") for m in said)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.context.destroy()
"""


def make_wheel(folder: Path, name: str, version: str) -> Path:
    """Write the smallest wheel there is: one module and one program."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(
            f"{name}.py", f"version = {version!r}\ndef say(): print(version)"
        )
        wheel.writestr(
            f"{about}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        )
        wheel.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
            "Tag: py3-none-any\n",
        )
        program = f"[console_scripts]\nsay-{name} = {name}:say\n"
        wheel.writestr(f"{about}/entry_points.txt", program)
        wheel.writestr(f"{about}/RECORD", "")
    path.chmod(0o644)
    return path


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(params=[pytest.param("auto", marks=pytest.mark.bwrap), "none"])
async def node(
    request: pytest.FixtureRequest, tmp_path: Path, place: Path
) -> AsyncIterator[Node]:
    traits: dict[str, Any] = {
        "isolation": request.param,
        "command": ["{python}", "-u", "-c", MAIN],
        "open_folder": str(place / "sessions"),
    }
    if request.param == "none" and os.geteuid() == 0:
        traits["environment"] = str(readable_environment(place))
    async with open_node(tmp_path, **traits) as node:
        yield node


def readable_environment(place: Path) -> Path:
    """Make an environment of everybody's Python, with the packages of ours."""
    made = place / "venv"
    make = ["/usr/bin/python3", "-m", "venv", "--without-pip", str(made)]
    subprocess.run(make, check=True, umask=0o022)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = made / "lib" / version / "site-packages"
    if not packages.is_dir():
        pytest.skip(f"/usr/bin/python3 is not {version}")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    closed = find_closed(ours)
    if closed:
        pytest.skip(f"a user that is not root cannot read our packages: {closed}")
    (packages / "ours.pth").write_text(
        "".join(f"import site; site.addsitedir({path!r})\n" for path in ours)
    )
    subprocess.run(["chmod", "-R", "a+rX", str(made)], check=True)
    return made


async def install_and_ask(node: Node, program: str, *wheels: tuple[str, str]) -> Any:
    """Run *program* in a session that finds *wheels* in its home."""
    spec = make_spec(memory=1 << 30)
    folder: ContainerFolder = node.folder(spec.id)
    folder.make()
    for name, version in wheels:
        make_wheel(folder.work, name, version)
    main = folder.work / "main.py"
    tail = "\ntell()\n" + SLEEP
    main.write_text(PREAMBLE.replace("/home/work/", "") + HELPERS + program + tail)
    main.chmod(0o644)
    await node.runtime.start(spec, ContainerPatch())
    result = folder.work / "result.json"
    await until(result.exists, seconds=120, what=lambda: node.log_of(spec.id))
    return await node.result(spec)


async def test_what_is_installed_is_found_by_new_interpreters_and_kernels(
    node: Node,
) -> None:
    found = await install_and_ask(
        node,
        "attempt('install', lambda: install('tiny', '1.0'))\n"
        "attempt('import', lambda: ask('import tiny; print(tiny.version)'))\n"
        "attempt('kernel', lambda: ask_kernel('import tiny; print(tiny.version)'))\n"
        "attempt('program', lambda: run('say-tiny'))\n"
        "attempt('upgrade', lambda: install('tiny', '2.0'))\n"
        "attempt('newer', lambda: ask('import tiny; print(tiny.version)'))\n"
        "attempt('uninstall', lambda: pip('uninstall', '-y', 'tiny'))\n"
        "attempt('again', lambda: ask('import tiny'))\n",
        ("tiny", "1.0"),
        ("tiny", "2.0"),
    )
    assert found.pop("again")[0] == "refused"
    assert found == {
        "install": ["done", "''"],
        "import": ["done", "'1.0'"],
        "kernel": ["done", "'1.0\\n'"],
        "program": ["done", "'1.0'"],
        "upgrade": ["done", "''"],
        "newer": ["done", "'2.0'"],
        "uninstall": ["done", "''"],
    }


async def test_a_package_of_the_environment_can_be_replaced_for_the_session(
    node: Node,
) -> None:
    found = await install_and_ask(
        node,
        "attempt('before', lambda: ask('import msgspec; print(msgspec.__file__)'))\n"
        "attempt('install', lambda: install('msgspec', '99.0'))\n"
        "attempt('after', lambda: ask('import msgspec; print(msgspec.version)'))\n"
        "attempt('uninstall', lambda: pip('uninstall', '-y', 'msgspec'))\n"
        "attempt('restored', lambda: ask('import msgspec; print(msgspec.__file__)'))\n",
        ("msgspec", "99.0"),
    )
    assert found["before"][0] == "done", found
    assert found["install"][0] == "done", found
    assert found["after"] == ["done", "'99.0'"]
    assert found["restored"] == found["before"]
