"""Logging in a command line: it shows a code, and a person confirms it in a browser.

In shape this is OAuth's device flow (RFC 8628), but what the command line receives is
a keypair of the person's own, which they see in their list and can take away.

Logins that wait live in this process's memory: a restart forgets them, and whoever
waits asks again.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

import msgspec

from backendai_hub.core.access import Caller, Principal
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
)
from backendai_hub.core.names import read_line
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Keypair
from backendai_hub.db import logins as rows
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.operations.nouns import create_noun, purge_noun
from backendai_hub.operations.open_logins import COMMAND_LINE, NewLogin, open_login
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user

EXPIRES_SECONDS: Final = 600
INTERVAL_SECONDS: Final = 2
MOST_WAITING: Final = 1000
MOST_PER_ADDRESS: Final = 10
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Without vowels, so that no code is a word, and without what looks alike."""
_KEYPAIR: Final = noun_of("keypair")


class LoginRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A command line that wants to log in; ``machine`` is what it calls itself."""

    machine: str = ""


class StartedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """What to show the person, and what to ask with; ``expires_in`` is seconds.

    The *device code* is the command line's own secret, the *user code* is for the
    person to compare.
    """

    device_code: str
    user_code: str
    verification_url: str
    verification_url_complete: str
    interval: int = INTERVAL_SECONDS
    expires_in: int = EXPIRES_SECONDS


class LoginTokenRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The question whether the person has confirmed."""

    device_code: str


class LoginAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Still waiting, or the keypair, which is told only once."""

    status: str
    user: str | None = None
    access_key: str | None = None
    secret_key: str | None = None


class WaitingLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A login that nobody has confirmed; what it says of itself may be a lie."""

    user_code: str
    machine: str
    agent: str
    address: str
    until: float


class _Login(msgspec.Struct):
    waiting: WaitingLogin
    device_hash: str
    asked_at: float = 0.0
    claimed: bool = False
    denied: bool = False
    keypair: Keypair | None = None


class LoginDesk:
    """The logins that wait to be confirmed or collected; bounded, and forgetful."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logins: dict[str, _Login] = {}

    def open(self, machine: str, *, agent: str, address: str) -> tuple[str, str]:
        """Let a login wait; return its device code and its user code."""
        self._forget()
        machine = read_line("machine", machine, 64)
        same = sum(1 for o in self._logins.values() if o.waiting.address == address)
        if same >= MOST_PER_ADDRESS or len(self._logins) >= MOST_WAITING:
            raise TooManyRequestsError(
                "too many logins wait to be confirmed; try again in a few minutes",
                retry_after=60,
            )
        code = _make_code()
        while code in self._logins:
            code = _make_code()
        device_code = secrets.token_urlsafe(32)
        waiting = WaitingLogin(
            user_code=code,
            machine=machine,
            agent="".join(c for c in agent if c.isprintable())[:128],
            address=address,
            until=self._clock() + EXPIRES_SECONDS,
        )
        self._logins[code] = _Login(waiting, _hash(device_code))
        return device_code, code

    def find(self, user_code: str) -> WaitingLogin:
        """Return a login that waits to be confirmed; codes are read generously."""
        return self._find_open(user_code).waiting

    def claim(self, user_code: str) -> WaitingLogin:
        """Take a login to decide on it: nobody else can from now on."""
        login = self._find_open(user_code)
        login.claimed = True
        return login.waiting

    def release(self, user_code: str) -> None:
        """Let a claimed login wait again."""
        if login := self._logins.get(user_code):  # it may have expired meanwhile
            login.claimed = False

    def grant(self, user_code: str, keypair: Keypair) -> bool:
        """Keep *keypair* until the command line asks for it; tell if it still can."""
        login = self._logins.get(user_code)
        if login is not None:
            login.keypair = keypair
        return login is not None

    def deny(self, user_code: str) -> None:
        """Tell the command line that the person said no."""
        if login := self._logins.get(user_code):
            login.denied = True

    def collect(self, device_code: str) -> LoginAnswer:
        """Say how a login stands; what has been decided is told once."""
        self._forget()
        asked = _hash(device_code)
        for code, login in self._logins.items():
            if hmac.compare_digest(login.device_hash, asked):
                return self._answer(code, login)
        raise NotFoundError("this login has expired, or never was; start it again")

    def _answer(self, code: str, login: _Login) -> LoginAnswer:
        now = self._clock()
        if login.denied:
            del self._logins[code]
            raise ForbiddenError("the login was refused in the browser")
        if login.keypair is not None:
            del self._logins[code]
            return LoginAnswer(
                status="ready",
                user=login.keypair.user,
                access_key=login.keypair.name,
                secret_key=login.keypair.secret,
            )
        if now - login.asked_at < INTERVAL_SECONDS / 2:
            raise TooManyRequestsError(
                f"ask every {INTERVAL_SECONDS} seconds", retry_after=INTERVAL_SECONDS
            )
        login.asked_at = now
        return LoginAnswer(status="waiting")

    def _find_open(self, user_code: str) -> _Login:
        self._forget()
        letters = "".join(c for c in user_code.upper() if c in _LETTERS)
        login = self._logins.get(f"{letters[:4]}-{letters[4:]}")
        if login is None or login.claimed:
            raise NotFoundError(
                "no login waits with this code; codes work once, and for ten minutes"
            )
        return login

    def _forget(self) -> None:
        now = self._clock()
        # They were made in order, and all live equally long.
        for code, login in list(self._logins.items()):
            if login.waiting.until > now:
                return
            del self._logins[code]


def _make_code() -> str:
    letters = [secrets.choice(_LETTERS) for _ in range(8)]
    return f"{''.join(letters[:4])}-{''.join(letters[4:])}"


def _hash(device_code: str) -> str:
    return sha256(device_code.encode("utf-8", "surrogatepass")).hexdigest()


async def confirm_login(
    platform: Platform,
    principal: Principal,
    desk: LoginDesk,
    user_code: str,
    *,
    is_admin: bool,
) -> WaitingLogin:
    """Make a keypair of the caller's own for the command line that shows the code."""
    waiting = desk.claim(user_code)
    where = waiting.machine or waiting.address
    actor = await ensure_user(platform, principal.name)
    # Everybody may make keys for themselves here, also who may change nothing else.
    own = msgspec.structs.replace(principal, caller=Caller.USER)
    place = NewLogin(kind=COMMAND_LINE, place=where, days=EXPIRES_SECONDS / 86400)
    try:
        async with platform.database.transaction() as tx:
            opened = await open_login(platform, tx, actor, place)
    except BaseException:
        desk.release(waiting.user_code)
        raise
    body = _KEYPAIR.create_type(
        user=principal.id,
        description=f"command line on {where}",
        is_admin=is_admin,
    )

    async def count_key(tx: Transaction, made: Item) -> None:
        # From now on it is logged in for as long as there is its key.
        if not await rows.change_login(
            tx, opened, keypair_id=made["id"], expires_at=None
        ):
            raise ConflictError("all your logins have just been ended; start it again")

    try:
        made = await create_noun(platform, own, _KEYPAIR, body, also=count_key)
    except BaseException:
        desk.release(waiting.user_code)
        async with platform.database.transaction() as tx:
            await rows.delete_login(tx, opened)
        raise
    if not desk.grant(waiting.user_code, made):
        # Nobody will ever fetch its secret: no key is left that nobody knows of.
        await purge_noun(platform, own, _KEYPAIR, made.id)
        raise NotFoundError(
            "this login has expired meanwhile; start it again on the command line"
        )
    return waiting
