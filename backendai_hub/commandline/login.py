"""Logging in and out, and who one is."""

from __future__ import annotations

import asyncio
import socket
import sys
import webbrowser
from typing import Any, Final
from urllib.parse import urlsplit

import click

from backendai_hub.commandline.access import SERVICE_PATH, Access
from backendai_hub.commandline.asking import (
    JSON_OPTION,
    PROFILE_OPTION,
    Asking,
    ending,
    find_setting,
    make_command,
)
from backendai_hub.commandline.output import Output, show_plain
from backendai_hub.commandline.profiles import DEFAULT, Profile
from backendai_hub.core.errors import (
    HubError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)

_LONGEST_SECRET: Final = 4096


@click.command(params=[PROFILE_OPTION, JSON_OPTION])
@click.option("--url", help="The platform's address, such as https://hub.example.")
@click.option(
    "--token-stdin",
    is_flag=True,
    help="Read a token of JupyterHub from standard input.",
)
@click.option("--access-key", help="Log in with this keypair.")
@click.option(
    "--secret-stdin", is_flag=True, help="Read its secret key from standard input."
)
@click.option(
    "--browser/--no-browser", default=True, help="Open the page to confirm on."
)
def login(
    *,
    profile: str | None,
    as_json: bool,
    url: str | None,
    browser: bool,
    access_key: str | None,
    **sources: bool,
) -> None:
    """Log in: by a browser, or with a token or a keypair.

    Secrets are never given on the command line, where others could see them: they are
    asked for, or read from standard input.
    """
    setting = find_setting()
    output = Output(as_json=as_json)
    with ending():
        name = profile or setting.environ.get("BACKENDAI_PROFILE") or DEFAULT
        known = setting.store.find(name)
        address = url or (known.url if known else "") or _ask_address()
        token, secret = _read_secrets(access_key, **sources)
        address = asyncio.run(find_service(address))
        if token is None and access_key is None:
            found = asyncio.run(_log_in_by_browser(address, output, browser=browser))
        else:
            found = Profile(
                url=address, token=token, access_key=access_key, secret_key=secret
            )
        found = asyncio.run(_with_name(found))
        setting.store.save(name, found)
    shown = {"profile": name, "url": found.url, "user": found.user}
    output.say(f"logged in to {found.url} as {found.user} (profile {name})", shown)


def _ask_address() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError("say where with --url")
    return str(click.prompt("Address of the platform", err=True))


def _read_secrets(
    access_key: str | None, *, token_stdin: bool, secret_stdin: bool
) -> tuple[str | None, str | None]:
    if token_stdin and (access_key or secret_stdin):
        raise click.UsageError("log in with a token or with a keypair, not with both")
    if secret_stdin and not access_key:
        raise click.UsageError("--secret-stdin goes with --access-key")
    if token_stdin:
        return _read_line("token"), None
    if access_key:
        if secret_stdin:
            return None, _read_line("secret key")
        return None, str(click.prompt("Secret key", hide_input=True, err=True))
    return None, None


def _read_line(what: str) -> str:
    text = sys.stdin.readline(_LONGEST_SECRET).strip()
    if not text:
        raise click.UsageError(f"there is no {what} on standard input")
    return text


async def find_service(address: str) -> str:
    """Return the service's address, also if only its JupyterHub's is given."""
    from backendai_hub.client.hub import HubClient  # noqa: PLC0415 - 0.2 s

    if "://" not in address:
        address = f"https://{address}"
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise click.UsageError(f"{address!r} is not an http or https address")
    if parts.username or parts.password:
        raise click.UsageError("give no name or password in the address")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    base = base.removesuffix("/hub").removesuffix("/api")
    candidates = [base]
    if "/services/" not in base:
        candidates.insert(0, f"{base}{SERVICE_PATH}")
    last: HubError | None = None
    for candidate in candidates:
        async with HubClient(candidate) as client:
            try:
                await client.version()
            except (KeyError, HubError) as error:
                last = error if isinstance(error, HubError) else last
            else:
                return candidate
    raise UnavailableError(
        f"no platform answers at {address}" + (f": {last.message}" if last else "")
    )


async def _log_in_by_browser(address: str, output: Output, *, browser: bool) -> Profile:
    from backendai_hub.client.hub import HubClient  # noqa: PLC0415 - 0.2 s

    async with HubClient(address) as client:
        started = await client.logins.start(machine=socket.gethostname()[:64])
        page = started.verification_url_complete
        output.note(f"Open {page}")
        output.note(f"and confirm there if it shows the code {started.user_code}")
        if browser and sys.stderr.isatty() and page.startswith(("http://", "https://")):
            await asyncio.to_thread(webbrowser.open, page)
        left = float(started.expires_in)
        while left > 0:
            await asyncio.sleep(started.interval)
            left -= started.interval
            try:
                answer = await client.logins.ask(started.device_code)
            except (TooManyRequestsError, UnavailableError):
                continue
            if answer.access_key and answer.secret_key:
                return Profile(
                    url=address,
                    access_key=answer.access_key,
                    secret_key=answer.secret_key,
                    made_here=True,
                )
    raise NotFoundError("nobody has confirmed the login in time; start it again")


async def _with_name(profile: Profile) -> Profile:
    """See that the login works, and whose it is."""
    access = Access(
        url=profile.url,
        token=profile.token,
        access_key=profile.access_key,
        secret_key=profile.secret_key,
        source="the new login",
    )
    async with access.open() as client:
        me = await client.me()
    return Profile(
        url=profile.url,
        token=profile.token,
        access_key=profile.access_key,
        secret_key=profile.secret_key,
        made_here=profile.made_here,
        user=me.name,
    )


_ALL_OPTION = click.Option(
    ["--all", "everywhere"],
    is_flag=True,
    help="End all of your logins first: browsers and other command lines, too.",
)


@click.command(params=[PROFILE_OPTION, _ALL_OPTION])
def logout(*, profile: str | None, everywhere: bool) -> None:
    """Forget a login, and take away the key that logging in made."""
    setting = find_setting()
    with ending():
        name = (
            profile or setting.environ.get("BACKENDAI_PROFILE") or setting.store.current
        )
        known = setting.store.find(name)
        if known is None:
            click.echo(f"there is no profile {show_plain(name)}", err=True)
            return
        if everywhere:
            _end_all(setting.find(name, None))
        elif known.made_here:
            _take_away(setting.find(name, None), known)
        setting.store.remove(name)
    click.echo(f"logged out of {show_plain(known.url)} (profile {show_plain(name)})")


def _end_all(access: Access) -> None:
    """End every login; that of this command line too, if it has a key of its own."""

    async def end() -> int:
        async with access.open() as client:
            return (await client.logins.end_all()).ended

    click.echo(f"ended {asyncio.run(end())} logins", err=True)


def _take_away(access: Access, profile: Profile) -> None:
    """Purge the keypair; if that cannot be done now, say so."""

    async def purge() -> None:
        async with access.open() as client:
            await client.keypairs.purge(profile.access_key or "")

    try:
        asyncio.run(purge())
    except HubError as error:
        click.echo(
            f"the key {profile.access_key} is still valid: {show_plain(error.message)}",
            err=True,
        )


async def _who(asking: Asking) -> None:
    asking.output.show_one(await asking.client.me())


whoami = make_command("whoami", _who, [], help="Show who you are, and your projects.")


@click.group()
def profile() -> None:
    """The logins that are kept on this machine."""


@profile.command("list", params=[JSON_OPTION])
def list_profiles(*, as_json: bool) -> None:
    """List the logins."""
    with ending():
        store = find_setting().store
        current = store.current
        rows: list[dict[str, Any]] = [
            {
                "name": name,
                "user": kept.user,
                "url": kept.url,
                "in_use": name == current,
            }
            for name, kept in sorted(store.read().items())
        ]
        Output(as_json=as_json).show_list(rows, ("name", "user", "url", "in_use"))


@profile.command("use")
@click.argument("name")
def use_profile(name: str) -> None:
    """Use another login from now on."""
    with ending():
        store = find_setting().store
        if name not in store.read():
            raise click.UsageError(f"there is no profile {name!r}")
        store.use(name)
