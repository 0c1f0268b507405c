"""Logging in to a real service from a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys

import aiohttp

from tests.admin import basic, make_administrator
from tests.commandline import CommandLine, Done
from tests.harness import Stack, running_stack


async def confirm(stack: Stack, code: str, key, **fields: str) -> str:
    """Decide on a login as somebody, and return the page."""
    headers = {"Authorization": basic(key.name, key.secret)}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{stack.url}activate", data={"code": code, **fields}) as answer,
    ):
        return await answer.text()


async def test_a_keypair_is_kept_in_a_private_file(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        key = await make_administrator(stack)
        shell = CommandLine(tmp_path)
        words = ("login", "--url", stack.url, "--access-key", key.name)

        wrong = await shell(*words, "--secret-stdin", say="guess\n")
        assert wrong.code == 4
        assert not shell.store.exists()

        done = await shell.well(*words, "--secret-stdin", say=f"{key.secret}\n")
        assert "as root" in done.out
        assert key.secret not in done.out + done.err
        assert stat.S_IMODE(shell.store.stat().st_mode) == 0o600
        assert (await shell.read("whoami"))["name"] == "root"

        shell.store.chmod(0o644)
        refused = await shell("whoami")
        assert refused.code == 1
        assert "chmod 600" in refused.err
        shell.store.chmod(0o600)

        await shell.well("logout")
        assert key.secret not in shell.store.read_text()
        assert (await shell("whoami")).code == 4
        # It was not made by logging in, so it is still valid.
        await shell.well(*words, "--secret-stdin", say=f"{key.secret}\n")


async def test_several_logins_are_kept_beside_each_other(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        root, ada = [await make_administrator(stack, name) for name in ("root", "ada")]
        shell = CommandLine(tmp_path)
        for key, name in ((root, "one"), (ada, "two")):
            await shell.well(
                *("login", "--profile", name, "--url", stack.url.rstrip("/")),
                *("--access-key", key.name, "--secret-stdin"),
                say=f"{key.secret}\n",
            )

        assert (await shell.read("whoami"))["name"] == "ada"
        assert (await shell.read("whoami", "--profile", "one"))["name"] == "root"
        await shell.well("profile", "use", "one")
        assert (await shell.read("whoami"))["name"] == "root"
        kept = (await shell.well("profile", "list", "--json")).json
        assert [(p["name"], p["in_use"]) for p in kept] == [
            ("one", True),
            ("two", False),
        ]
        missing = await shell("whoami", "--profile", "three")
        assert missing.code == 4
        assert "one, two" in missing.err


async def test_an_address_of_jupyterhub_leads_to_the_service(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        key = await make_administrator(stack)
        shell = CommandLine(tmp_path)
        base = stack.url.partition("/services/")[0]

        await shell.well(
            *("login", "--url", f"{base}/", "--access-key", key.name),
            "--secret-stdin",
            say=f"{key.secret}\n",
        )

        kept = json.loads(shell.store.read_text())["profiles"]["default"]
        assert kept["url"] == stack.url.rstrip("/")
        nowhere = await shell("login", "--url", "http://127.0.0.1:9/")
        assert nowhere.code == 3
        wrong = await shell("login", "--url", "ftp://hub.example")
        assert wrong.code == 2


async def test_a_login_is_confirmed_by_who_is_logged_in_and_taken_away_again(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        key = await make_administrator(stack)
        api = f"{stack.url}api/logins"
        mine = {"Authorization": basic(key.name, key.secret)}
        async with aiohttp.ClientSession() as http:
            async with http.post(api, json={"machine": "<b>evil</b>"}) as answer:
                assert answer.status == 201
                started = await answer.json()
            page = started["verification_url_complete"]
            async with http.get(page, headers=mine) as answer:
                text = await answer.text()
                policy = answer.headers["Content-Security-Policy"]
            assert started["user_code"] in text
            assert "&lt;b&gt;evil" in text
            assert "<b>evil" not in text
            assert "script" not in policy
            assert "form-action 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert 'name="is_admin"' in text, "a superadmin may say so"
            assert "checked" not in text, "and does not by default"

            body = {"device_code": started["device_code"]}
            async with http.post(f"{api}/token", json=body) as answer:
                assert (await answer.json())["status"] == "waiting"
            assert "Logged in" in await confirm(
                stack, started["user_code"], key, decision="confirm"
            )
            assert "no login waits" in await confirm(
                stack, started["user_code"], key, decision="confirm"
            )
            async with http.post(f"{api}/token", json=body) as answer:
                told = await answer.json()
            assert told["user"] == "root"
            async with http.post(f"{api}/token", json=body) as answer:
                assert answer.status == 404

        shell = CommandLine(
            tmp_path,
            BACKENDAI_ENDPOINT=stack.url,
            BACKENDAI_ACCESS_KEY=told["access_key"],
            BACKENDAI_SECRET_KEY=told["secret_key"],
        )
        made = await shell.read("keypair", "info", told["access_key"])
        assert made["description"] == "command line on <b>evil</b>"
        assert made["is_admin"] is False
        refused = await shell("admin", "domain", "add", "mine")
        assert refused.code == 1, "it was not ticked"


async def test_the_terminal_waits_for_the_browser(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        key = await make_administrator(stack)
        shell = CommandLine(tmp_path)

        for decision, extra in (("confirm", {"is_admin": "yes"}), ("refuse", {})):
            done, code = await log_in_with(shell, stack, key, decision, extra)
            assert code in done.err
            if decision == "refuse":
                assert done.code == 1
                assert "refused in the browser" in done.err
                continue
            assert done.code == 0, done
            await shell.well("admin", "domain", "add", "mine")
            access_key = json.loads(shell.store.read_text())["profiles"]["default"][
                "access_key"
            ]
            await shell.well("logout")
            assert access_key not in await names_of_keys(stack, key)


async def log_in_with(shell, stack, key, decision, extra):
    """Run ``login`` as a program, and decide on it by the code that it shows."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backendai_hub.cli", "login", "--url", stack.url),
        env={**os.environ, **shell.environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    said = [(await process.stderr.readline()).decode() for _ in range(2)]
    found = re.search(r"[A-Z]{4}-[A-Z]{4}$", said[1].strip())
    assert found is not None, said
    await confirm(stack, found[0], key, decision=decision, **extra)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    text = "".join(said) + err.decode()
    return Done(process.returncode or 0, out.decode(), text), found[0]


async def names_of_keys(stack, key):
    headers = {"Authorization": basic(key.name, key.secret)}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.get(f"{stack.url}api/keypairs?user=root") as answer,
    ):
        return [item["name"] for item in (await answer.json())["items"]]


async def test_anonymous_people_cannot_flood_the_service_with_logins(tmp_path):
    async with running_stack(tmp_path / "data", agent=False) as stack:
        statuses = []
        async with aiohttp.ClientSession() as http:
            for _ in range(12):
                async with http.post(f"{stack.url}api/logins", json={}) as answer:
                    statuses.append(answer.status)
                    after = answer.headers.get("Retry-After")
            assert statuses == [201] * 10 + [429] * 2
            assert after is not None
            async with http.post(f"{stack.url}activate", data={}) as answer:
                assert answer.status in {401, 404}
