"""Administering a real service with the command line alone."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

from tests.admin import make_administrator
from tests.commandline import CommandLine, column, with_keypair
from tests.harness import running_stack


@asynccontextmanager
async def administered(tmp_path, *, agent=False):
    """A service, and the shell of its administrator."""
    async with running_stack(tmp_path / "data", agent=agent) as stack:
        key = await make_administrator(stack)
        yield stack, with_keypair(tmp_path / "root", stack.url, key.name, key.secret)


async def test_nouns_are_made_shown_changed_and_ended(tmp_path):
    async with administered(tmp_path) as (_, root):
        made = await root.read(
            *("admin", "domain", "add", "research"),
            *("--slots", "cpu=8,mem=32g", "--slots", "cuda.device=inf"),
            *("--allowed-docker-registries", "local"),
            *("--allowed-vfolder-hosts", "nfs=mount-in-session+upload-file"),
        )
        assert made["total_resource_slots"] == {
            "cpu": "8",
            "cuda.device": "inf",
            "mem": "32g",
        }
        assert made["allowed_docker_registries"] == ["local"]
        hosts = {"nfs": ["mount-in-session", "upload-file"]}
        assert made["allowed_vfolder_hosts"] == hosts

        changed = await root.read(
            *("admin", "domain", "update", "research", "--if-match", "1"),
            *("--description", "people who look", "--slots", ""),
            *("--allowed-docker-registries", ""),
        )
        assert changed["description"] == "people who look"
        assert changed["total_resource_slots"] == {}
        assert changed["allowed_docker_registries"] == []
        assert changed["allowed_vfolder_hosts"] == hosts, "not named: it stays"

        stale = await root(
            *("admin", "domain", "update", "research", "--if-match", "1"),
            *("--description", "other"),
        )
        assert stale.code == 1
        assert "has changed since revision 1" in stale.err
        assert "read it again" in stale.err

        refused = await root("admin", "domain", "purge", "research", "--yes")
        assert refused.code == 1
        assert "make it inactive first" in refused.err
        assert len(refused.err.splitlines()) == 1

        await root.well("admin", "domain", "deactivate", "research")
        assert not (await root.read("admin", "domain", "info", "research"))["is_active"]
        await root.well("admin", "domain", "purge", "research", "--yes")
        gone = await root("admin", "domain", "info", "research")
        assert gone.code == 1
        assert gone.err == "error: there is no domain 'research'\n"


async def test_what_cannot_be_undone_is_not_done_by_a_script_that_does_not_mean_it(
    tmp_path,
):
    async with administered(tmp_path) as (_, root):
        await root.well("admin", "domain", "add", "research", "--no-is-active")

        done = await root("admin", "domain", "purge", "research")

        assert done.code == 2
        assert "--yes" in done.err
        await root.well("admin", "domain", "info", "research")


async def test_what_may_be_without_a_value_is_given_none(tmp_path):
    async with administered(tmp_path) as (_, root):
        policy = ("admin", "policy", "keypair")
        made = await root.read(*policy, "add", "student", "--max-priority", "50")
        assert made["max_priority"] == 50
        changed = await root.read(*policy, "update", "student", "--max-priority=none")
        assert changed["max_priority"] is None


async def test_lists_are_filtered_sorted_and_cut(tmp_path):
    async with administered(tmp_path) as (_, root):
        await root.well("admin", "domain", "add", "physics")
        many = ("admin", "user", "bulk-add", "--prefix", "student", "--count", "12")
        await root.well(*many, "--domain", "physics")

        some = await root.well(
            *("admin", "user", "list", "--filter", "domain=physics"),
            *("--order", "-name", "--limit", "3"),
        )
        assert column(some, 0) == ["student12", "student11", "student10"]
        assert "more than 3; --all" in some.err

        everyone = await root.well(
            *("admin", "user", "list", "--filter", "domain=physics", "--all"),
            *("--columns", "name,domain"),
        )
        assert everyone.lines[0] == ["student01", "physics"]
        assert len(everyone.lines) == 12
        assert everyone.err == ""

        found = await root.read("admin", "user", "list", "--search", "student1")
        names = [user["name"] for user in found]
        assert names == ["student10", "student11", "student12"]

        wrong = await root("admin", "user", "list", "--filter", "shoe=42")
        assert wrong.code == 2
        assert "resource_policy" in wrong.err


async def test_each_of_many_ends_for_itself(tmp_path):
    async with administered(tmp_path) as (_, root):
        table = tmp_path / "people.csv"
        table.write_text(
            "name,role,email\nada,user,ada@example.org\nADA,,\nbob,king,\n"
        )

        done = await root("admin", "user", "bulk-add", "--csv", str(table))

        assert done.code == 5
        assert [line[:3] for line in done.lines] == [
            ["create", "ada", "ok"],
            ["create", "ADA", "failed"],
            ["create", "bob", "failed"],
        ]
        assert "another spelling" in done.lines[1][3]
        assert "superadmin" in done.lines[2][3]

        changes = {
            "update": [{"reference": "ada", "fields": {"full_name": "Ada L."}}],
            "purge": ["nobody"],
        }
        file = tmp_path / "changes.json"
        file.write_text(json.dumps(changes))
        done = await root("admin", "user", "bulk", str(file), "--json")
        assert done.code == 5
        assert (done.json["succeeded"], done.json["failed"]) == (1, 1)

        done = await root("admin", "user", "deactivate", "ada", "nobody", "no-one")
        assert done.code == 5
        assert column(done, 2) == ["ok", "failed", "failed"]
        done = await root("admin", "user", "deactivate", "nobody", "no-one")
        assert done.code == 1, "all of them"


async def test_a_keypair_is_shown_once_and_works_until_it_is_issued_anew(tmp_path):
    async with administered(tmp_path) as (stack, root):
        await root.well("admin", "user", "add", "grace")
        made = await root.read("admin", "keypair", "add", "--user", "grace")
        grace = with_keypair(tmp_path / "g", stack.url, made["name"], made["secret"])
        assert (await grace.read("whoami"))["name"] == "grace"

        own = await grace.read("keypair", "add", "--description", "laptop")
        assert own["user"] == "grace"
        assert own["secret"]
        listed = await grace.read("keypair", "list")
        assert {k["user"] for k in listed} == {"grace"}
        assert {k.get("secret") for k in listed} == {None}
        assert "root" not in (await grace.well("keypair", "list", "--all")).out

        issued = await grace.read("keypair", "issue", made["name"])
        refused = await grace("whoami")
        assert refused.code == 4
        again = with_keypair(
            tmp_path / "g", stack.url, issued["access_key"], issued["secret_key"]
        )
        await again.well("whoami")


async def test_people_join_projects_and_groups_are_opened(tmp_path):
    async with administered(tmp_path) as (_, root):
        await root.well("admin", "domain", "add", "research")
        await root.well("admin", "project", "add", "vision", "--domain", "research")
        await root.well("admin", "user", "add", "grace", "--domain", "research")
        await root.well("admin", "user", "add", "stranger")

        done = await root(
            *("admin", "project", "add-member", "research:vision", "grace", "stranger")
        )
        assert done.code == 5
        assert done.lines[0] == ["grace", "added", ""]
        assert "their own domain" in done.lines[1][2]
        members = await root.well("admin", "project", "members", "research:vision")
        assert column(members, 0) == ["grace"]
        await root.well("admin", "project", "remove-member", "research:vision", "grace")

        group = ("admin", "resource-group")
        await root.well(*group, "add", "gpu", "--scheduler", "drf")
        opened = await root.well(*group, "allow", "gpu", "--domain", "research")
        assert opened.lines == [["domain", "research"]]
        closed = await root.well(*group, "deny", "gpu", "--domain", "research")
        assert closed.out == ""
        nobody = await root(*group, "allow", "gpu")
        assert nobody.code == 2


async def test_presets_slot_types_and_usage(tmp_path):
    async with administered(tmp_path, agent=True) as (_, root):
        preset = await root.read(
            *("admin", "preset", "add", "tiny", "--slots", "cpu=1,mem=1g"),
            *("--shared-memory", "64m"),
        )
        assert preset["resource_slots"] == {"cpu": "1", "mem": "1g"}
        checked = await root.read("preset", "check")
        assert {p["name"]: p["allocatable"] for p in checked["presets"]}["tiny"]

        off = await root.read("admin", "slot-type", "deactivate", "mem")
        assert off["enabled"] is False
        assert "mem" in (await root.well("resources")).out
        usage = await root.read("admin", "usage", "verify")
        assert usage["drift"] == 0


async def test_secrets_come_from_files_and_are_not_shown(tmp_path):
    async with administered(tmp_path) as (_, root):
        password = tmp_path / "password"
        password.write_text("sesame")

        made = await root.well(
            *("admin", "registry", "add", "hub", "--url", "https://registry.example"),
            *("--username", "reader", "--password", str(password), "--json"),
        )

        assert "sesame" not in made.out
        assert made.json["has_password"] is True
        assert "password" not in made.json


async def test_a_refused_field_says_all_that_is_wrong(tmp_path):
    async with administered(tmp_path) as (_, root):
        done = await root(
            *("admin", "domain", "add", "-x-", "--slots", "cpu=many"),
        )
        assert done.code == 2, "an option that does not exist is the shell's to tell"
        done = await root("admin", "domain", "add", "a b", "--slots", "cpu=many")
        assert done.code == 1
        assert "name:" in done.err
        assert "total_resource_slots:" in done.err
        unknown = await root("admin", "domain", "add", "a", "--slots", "cuda.devices=1")
        assert "did you mean 'cuda.device'" in unknown.err


async def test_who_is_not_logged_in_or_finds_nobody_is_told(tmp_path):
    shell = CommandLine(tmp_path)

    done = await shell("whoami")
    assert done.code == 4
    assert done.err == (
        "error: not logged in; 'backendai login --url ADDRESS' does it\n"
    )

    away = with_keypair(tmp_path, "http://127.0.0.1:9/", "AKIA", "secret")
    done = await away("whoami")
    assert done.code == 3
    assert "does not answer" in done.err


async def test_weights_are_set_and_shares_shown(tmp_path):
    async with administered(tmp_path) as (_, root):
        share = ("admin", "fair-share")
        await root.read("admin", "domain", "add", "research")
        for name in ("vision", "audio"):
            await root.read("admin", "project", "add", name, "--domain", "research")
        changed = await root.read(
            *(*share, "set", "default", "--domain", "research"),
            *("--project", "vision", "--project", "audio", "--weight", "2"),
            *("--guarantee", "cpu=1", "--guarantee", "mem=1g", "--maximum", "mem=2g"),
        )
        assert [c["weight"] for c in changed] == [2, 2]
        assert [c["maximum"] for c in changed] == [{"mem": "2g"}] * 2

        table = tmp_path / "weights.csv"
        table.write_text(
            "domain,project,weight,guaranteed,maximum\n"
            "research,vision,,cpu=2 mem=1g,cpu=4\nresearch,audio,0.5,,\n"
        )
        await root.read(*share, "set", "default", "--csv", str(table))

        shown = await root.read(*share, "show", "default", "--domain", "research")
        told = {
            e["name"]: (
                e["weight"],
                e["weight_is_default"],
                e["guaranteed"],
                e["maximum"],
            )
            for e in shown["entries"]
        }
        assert told == {
            "vision": (1, True, {"cpu": "2", "mem": "1g"}, {"cpu": "4"}),
            "audio": (0.5, False, {}, {}),
        }
        (changed,) = await root.read(
            *(*share, "set", "default", "--domain", "research"),
            *("--project", "vision", "--no-maximum"),
        )
        assert (changed["maximum"], changed["guaranteed"]["cpu"]) == ({}, "2")
        printed = await root(*share, "show", "default")
        assert printed.code == 0
        assert "worked off by fifo" in printed.err
        assert "research" in printed.out
        assert (await root(*share, "usage", "default", "--days", "7")).code == 0

        for arguments, told in (
            (("--domain", "research"), "give a --weight"),
            (("--domain", "research", "--user", "x", "--weight", "1"), "--project"),
            (("--domain", "research", "--weight", "nan"), "a weight is a number from"),
            (("--csv", str(table), "--weight", "1"), "give --csv alone"),
            (("--domain", "research", "--guarantee", "cpu"), "SLOT=AMOUNT"),
            (
                ("--domain", "research", "--maximum", "cpu=1", "--no-maximum"),
                "not both",
            ),
            (
                ("--domain", "research", "--maximum", "cpu=1", "--guarantee", "cpu=2"),
                "raise the maximum, or guarantee less",
            ),
        ):
            refused = await root(*share, "set", "default", *arguments)
            assert refused.code != 0
            assert told in refused.err, arguments
