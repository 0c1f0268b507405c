"""Virtual folders with the command line alone, on a real service."""

from __future__ import annotations

from pathlib import Path

from tests.admin import make_administrator
from tests.commandline import CommandLine, column, with_keypair
from tests.harness import Stack, running_stack


async def make_person(root: CommandLine, stack: Stack, tmp_path: Path, name: str):
    await root.well("admin", "user", "add", name)
    key = await root.read("keypair", "add", "--user", name)
    return with_keypair(tmp_path / name, stack.url, key["name"], key["secret"])


async def test_folders_from_the_shell(tmp_path: Path, migrated_url: str):
    places = tmp_path / "folders"
    flags = [f"--HubService.local_folders={places}"]
    data = tmp_path / "data"
    async with running_stack(data, migrated_url, agent=False, flags=flags) as stack:
        key = await make_administrator(stack)
        root = with_keypair(tmp_path / "root", stack.url, key.name, key.secret)
        alice = await make_person(root, stack, tmp_path, "alice")
        bob = await make_person(root, stack, tmp_path, "bob")

        carol = await make_person(root, stack, tmp_path, "carol")
        await carol.read("folder", "create", "left")
        await root.well("admin", "user", "deactivate", "carol")
        also = ("--also", "shared-folders", "--yes")
        await root.well("admin", "user", "purge", "carol", *also)

        # What is told to who comes from a version without folders.
        hosts = "--allowed-vfolder-hosts"
        await root.well("admin", "domain", "update", "default", hosts, "local=*")
        (host,) = await alice.read("folder", "hosts")
        assert (host["name"], host["is_default"]) == ("local", True)
        assert "create-vfolder" in host["permissions"]

        made = await alice.read("folder", "create", "data", "--cloneable")
        assert (made["status"], made["access"]) == ("ready", "rw")
        assert column(await alice.well("folder", "list"), 0) == ["data"]
        await alice.well("folder", "rename", "data", "sets")
        await alice.well("folder", "update", "sets", "--permission", "wd")
        assert (await alice.read("folder", "info", "sets"))["permission"] == "wd"

        copy = await alice.read("folder", "clone", "sets", "copy", "--wait")
        assert (copy["status"], copy["name"]) == ("ready", "copy")
        tasks = await alice.read("folder", "tasks", "--folder", "copy")
        assert [(t["kind"], t["state"]) for t in tasks] == [("clone", "done")]

        (asked,) = await alice.read("folder", "invite", "sets", "bob")
        (seen,) = await bob.read("folder", "invitations")
        assert seen["id"] == asked["invitation"]
        await bob.well("folder", "accept", seen["id"])
        assert column(await bob.well("folder", "list"), 0) == ["sets"]
        guests = await alice.read("folder", "share", "sets", "bob", "rw")
        assert [(g["user"], g["permission"]) for g in guests] == [("bob", "rw")]
        refused = await bob("folder", "delete", "sets")
        assert refused.code == 1
        assert "its owner may do this" in refused.err
        await bob.well("folder", "leave", "sets")
        (again,) = await alice.read("folder", "invite", "sets", "bob")
        await bob.well("folder", "reject", again["invitation"])

        partly = await alice("folder", "delete", "sets", "nothing")
        assert partly.code == 5
        assert "no folder 'nothing'" in partly.err
        assert (await alice("folder", "purge", "sets")).code == 2, "it asks"
        await alice.well("folder", "restore", "sets")
        await alice.well("folder", "delete", "sets")
        await alice.well("folder", "purge", "sets", "--yes", "--wait")
        assert (await alice.read("folder", "info", made["id"]))["status"] == (
            "delete-complete"
        )
        told = await alice.read("folder", "activity", made["id"])
        assert told[-1]["action"] == "folder:create"

        scope = await root.read(
            *("admin", "storage", "set-quota", "local", "alice", "--size", "5g")
        )
        assert (scope["limit_bytes"], scope["limit_from"]) == (5 << 30, "scope")
        (mine,) = await alice.read("folder", "usage")
        assert (mine["owner"], mine["limit_bytes"]) == ("alice", 5 << 30)
        (shown,) = await root.read("admin", "storage", "hosts")
        assert shown["state"] == "ok"
        assert shown["total_bytes"] > 0
        moved = await root.read(
            *("admin", "folder", "transfer", copy["id"], "--user", "bob")
        )
        assert moved["user"] == "bob"
        assert any(places.glob("user-*/*/*/*"))
