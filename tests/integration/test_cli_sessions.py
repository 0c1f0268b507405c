"""Sessions, accounts and completion from a terminal, on a real service."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager

from click.shell_completion import ShellComplete

from backendai_hub.cli import main
from tests.admin import make_administrator
from tests.commandline import column, with_keypair
from tests.harness import running_stack


@asynccontextmanager
async def working(tmp_path, *, agent=True):
    async with running_stack(tmp_path / "data", agent=agent) as stack:
        key = await make_administrator(stack)
        yield stack, with_keypair(tmp_path / "root", stack.url, key.name, key.secret)


async def test_sessions_are_asked_for_seen_and_ended(tmp_path):
    async with working(tmp_path) as (stack, root):
        async with stack.client("root") as spawner:
            made = await spawner.launch("train", slots={"cpu": "0.5"})
            running = await spawner.reach(made["id"], "RUNNING")
        name = running["name"]
        waited = await root.well("session", "wait", name, "--json")
        assert waited.json["status"] == "RUNNING"

        asked = await root.read(
            *("session", "start", "jupyterlab", "--name", "next", "--priority", "20"),
            *("--slots", "cpu=0.25,mem=512m", "--slots", "cuda.device=0"),
        )
        assert asked["status"] == "PENDING", "JupyterHub would attach it; there is none"
        assert (asked["priority"], asked["slots"]["cpu"]) == (20, "0.25")
        renamed = await root.read("session", "rename", "next", "later")
        assert (renamed["name"], renamed["status"]) == ("later", "PENDING")
        taken = await root("session", "rename", "later", name)
        assert taken.code == 1
        assert "another live session" in taken.err
        await root.well("session", "rename", "later", "next")
        listed = await root.well(
            *("session", "list", "--columns", "name,status", "--order", "created_at"),
        )
        assert sorted(listed.lines) == sorted([[name, "RUNNING"], ["next", "PENDING"]])
        assert (await root.read("session", "info", name))["id"] == made["id"]
        events = await root.well("session", "events", name)
        assert column(events, 1)[0] == "session.submitted"

        ended = await root("session", "terminate", name, "next", "nothing")
        assert ended.code == 5
        assert column(ended, 0) == [name, "next", "nothing"]
        assert column(ended, 1)[1:] == ["CANCELLED", ""]
        assert "there is no session 'nothing'" in ended.lines[2][2]
        gone = await root("session", "wait", asked["id"])
        assert gone.code == 1, "it has ended"
        refused = await root("session", "start", "no-such-image")
        assert refused.code == 1
        assert refused.err.startswith("error: ")


async def test_accounts_are_made_one_by_one_and_many_at_once(tmp_path):
    async with working(tmp_path, agent=False) as (_, root):
        made = await root.read("admin", "account", "add", "grace", "--full-name", "G")
        assert made["password"]
        again = await root.read("admin", "account", "reset", "grace")
        assert again["password"] not in {"", made["password"]}
        many = ("admin", "account", "bulk-add", "--prefix", "s", "--count", "3")
        done = await root.well(*many)
        assert column(done, 0) == ["s1", "s2", "s3"]
        assert all(column(done, 1))
        done = await root(*many)
        assert done.code == 1, "all of them are there"
        table = tmp_path / "people.csv"
        table.write_text("name,email\nada,ada@example.org\ns1,\n")
        done = await root("admin", "account", "bulk-add", "--csv", str(table))
        assert done.code == 5
        await root.well("admin", "account", "unlock", "grace")


async def test_names_are_completed_for_who_is_logged_in(tmp_path, monkeypatch):
    async with working(tmp_path, agent=False) as (_, root):
        for name in ("research", "resale", "teaching"):
            await root.well("admin", "domain", "add", name)
        for name, value in root.environ.items():
            monkeypatch.setenv(name, value)

        def complete(*words):
            *before, last = words
            shell = ShellComplete(main, {}, "backendai", "_BACKENDAI_COMPLETE")
            return [i.value for i in shell.get_completions(list(before), last)]

        found = await asyncio.to_thread(complete, "admin", "domain", "info", "res")
        assert found == ["resale", "research"]
        found = await asyncio.to_thread(
            complete, "admin", "project", "add", "x", "--domain", "t"
        )
        assert found == ["teaching"]
        monkeypatch.setenv("BACKENDAI_SECRET_KEY", "wrong")
        found = await asyncio.to_thread(complete, "admin", "domain", "info", "res")
        assert found == [], "and nothing is said"


async def test_a_session_can_be_tried_out_before_it_is_asked_for(tmp_path):
    async with working(tmp_path) as (_, root):
        start = ("session", "start", "jupyterlab", "--dry-run", "--resources")
        tried = await root.well(*start, "cpu=0.5")
        assert tried.out.startswith("would ")
        assert "cpu 0.5" in tried.out
        refused = await root(*start, "cpu=4000")
        assert refused.code == 1
        assert refused.out.startswith("would be refused")
        assert await root.read("session", "list") == []


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def test_an_interrupted_command_ends_without_a_word(tmp_path):
    async with working(tmp_path) as (_, root):
        # It waits, and for one and the same thing all the time.
        await root.well("session", "start", "jupyterlab", "--name", "never")
        await root.well("session", "hold", "never", "--reason", "not yet")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "backendai_hub.cli", "session", "wait", "never"),
            env={**os.environ, **root.environ},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # What a shell runs in the background ignores Ctrl-C, and so would this.
            preexec_fn=heed_interrupts,
        )
        assert process.stderr is not None
        told = (await process.stderr.readline()).decode()
        assert "never: PENDING, held by its owner" in told
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 130
        assert (out, err) == (b"", b"")


async def test_the_operator_of_this_machine_is_told_if_the_platform_is_down(tmp_path):
    async with working(tmp_path, agent=False) as (stack, root):
        stack.folder.state.write_text("{}")
        root.environ = {
            name: "" if name.startswith("BACKENDAI_") else value
            for name, value in root.environ.items()
        }
        root.environ["BACKENDAI_DATA_DIR"] = str(stack.folder.root)

        done = await root("whoami")
        assert done.code in {3, 4}, done
        named = await root("whoami", "--data-dir", str(tmp_path / "nothing"))
        assert named.code == 4
        assert "no platform in" in named.err


async def test_the_audit_is_listed_taken_away_and_checked(tmp_path):
    async with working(tmp_path, agent=False) as (_, root):
        await root.well("admin", "domain", "add", "research")
        await root("admin", "domain", "add", "RESEARCH")

        acts = await root.well(
            *("audit", "list", "--filter", "action=domain:create"),
            *("--columns", "actor,object_name,result"),
        )
        assert sorted(line[2] for line in acts.lines) == ["refused", "success"]
        assert {line[0] for line in acts.lines} == {"root"}
        table = await root.well("audit", "export", "--filter", "object_kind=domain")
        assert table.out.startswith("seq,")
        assert "research" in table.out
        lines = await root.well("audit", "export", "--format", "jsonl")
        assert lines.out.startswith("{")
        report = await root.read("audit", "verify")
        assert report["ok"] is True
        assert report["rows"] >= 2


async def test_an_ssh_key_is_made_brought_and_removed(tmp_path):
    async with working(tmp_path, agent=False) as (_, root):
        made = await root.well("ssh-key", "make")
        begin = made.out.index("-----BEGIN OPENSSH PRIVATE KEY-----\n")
        assert made.out.rstrip().endswith("-----END OPENSSH PRIVATE KEY-----")
        shown = await root.read("ssh-key", "show")
        assert (shown["kind"], shown["private_key"]) == ("ssh-ed25519", "")

        file = tmp_path / "id"
        await root.well("ssh-key", "make", "--output", str(file))
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_text() != made.out[begin:]
        before = await root.read("ssh-key", "show")
        refused = await root("ssh-key", "make", "--output", str(file))
        assert refused.code != 0
        assert "File exists" in refused.err
        assert await root.read("ssh-key", "show") == before

        await root.well("ssh-key", "bring", "-", say=made.out[begin:])
        again = await root.read("ssh-key", "show")
        assert again["fingerprint"] == shown["fingerprint"]
        await root.well("ssh-key", "remove")
        assert (await root.read("ssh-key", "show"))["public_key"] == ""


async def test_files_for_sessions_are_put_and_taken_away(tmp_path):
    async with working(tmp_path, agent=False) as (_, root):
        file = tmp_path / "vimrc"
        file.write_text("set number\n")

        await root.well("dotfile", "put", ".vimrc", str(file))
        put = await root.well(
            *("dotfile", "put", ".config/tool", "-", "--permission", "600"),
            say="loud = no\n",
        )
        assert sorted(put.lines) == [[".config/tool", "600"], [".vimrc", "644"]]
        assert (await root.read("dotfile", "show", ".vimrc"))["content"] == (
            "set number\n"
        )
        of_project = ("dotfile", "list", "--project", "default")
        assert await root.read(*of_project) == []
        await root.well("dotfile", "remove", ".vimrc")
        assert (await root("dotfile", "remove", ".vimrc")).code == 1
        outside = await root("dotfile", "put", "../.bashrc", str(file))
        assert outside.code == 1


async def test_nodes_are_moved_and_closed(tmp_path):
    async with working(tmp_path) as (_, root):
        (node,) = await root.read("admin", "node", "list")
        assert (node["resource_group"], node["schedulable"]) == ("default", True)
        await root.well("admin", "resource-group", "add", "gpu")
        words = ("admin", "node", "update", node["name"])
        moved = await root.read(*words, "--resource-group", "gpu", "--no-schedulable")
        assert (moved["resource_group"], moved["schedulable"]) == ("gpu", False)
        assert (await root(*words)).code == 2
        assert (await root("admin", "node", "info", "nothing")).code == 1
