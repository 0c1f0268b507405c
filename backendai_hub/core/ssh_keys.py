"""SSH keys: making them, reading those that people bring, and where sessions find them.

What is made is an Ed25519 key (RFC 8709). What is brought may be one that OpenSSH or
another program has written, as long as no passphrase is on it: a session has nobody to
ask for one.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import InvalidRequestError

LEAST_RSA_BITS: Final = 2048
MOST_RSA_BITS: Final = 8192
MOST_CHARACTERS: Final = 16 << 10

PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey
_NAMES: Final = {
    "ssh-ed25519": "id_ed25519",
    "ssh-rsa": "id_rsa",
    "ecdsa-sha2-nistp256": "id_ecdsa",
    "ecdsa-sha2-nistp384": "id_ecdsa",
    "ecdsa-sha2-nistp521": "id_ecdsa",
}


class SSHKeyPair(msgspec.Struct, frozen=True, kw_only=True):
    """Both parts, as OpenSSH writes them."""

    public_key: str
    private_key: str

    @property
    def kind(self) -> str:
        """What OpenSSH calls its type, such as ``ssh-ed25519``."""
        return self.public_key.split(" ", 1)[0]


def make_ssh_key(comment: str) -> SSHKeyPair:
    """Make a new Ed25519 key; *comment* says whose it is."""
    return _write(Ed25519PrivateKey.generate(), comment)


def read_ssh_key(text: str, comment: str) -> SSHKeyPair:
    """Read a private key that somebody brings, and work out its public part.

    Raises :class:`InvalidRequestError` for what is no key, has a passphrase, is of
    another type than RSA, ECDSA and Ed25519, or is too short to be safe.
    """
    if len(text) > MOST_CHARACTERS:
        raise _refuse(f"it has {len(text)} characters; the most is {MOST_CHARACTERS}")
    found = _load(text.strip().encode() + b"\n")
    if not isinstance(found, PrivateKey):
        raise _refuse("its type is not one of RSA, ECDSA and Ed25519")
    if isinstance(found, RSAPrivateKey) and not (
        LEAST_RSA_BITS <= found.key_size <= MOST_RSA_BITS
    ):
        raise _refuse(
            f"it is an RSA key of {found.key_size} bits; use {LEAST_RSA_BITS} to"
            f" {MOST_RSA_BITS}"
        )
    made = _write(found, comment)
    if made.kind not in _NAMES:
        raise _refuse("OpenSSH does not know its curve; use P-256, P-384 or P-521")
    return made


def _load(text: bytes) -> object:
    loads = load_ssh_private_key if b"OPENSSH" in text[:64] else load_pem_private_key
    try:
        # Whether its primes are prime takes a second for what is short and minutes for
        # what is long, and a key that is wrong harms nobody but who brings it.
        return loads(text, password=None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        raise _refuse(
            "it has a passphrase; take it off with ssh-keygen -p, or make a key here"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        # What the library says may quote the key.
        raise _refuse(
            "it is not a private key as ssh-keygen writes it: it begins with a line"
            " such as -----BEGIN OPENSSH PRIVATE KEY-----"
        ) from None


def _write(key: PrivateKey, comment: str) -> SSHKeyPair:
    try:
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    except (ValueError, UnsupportedAlgorithm):
        raise _refuse(
            "OpenSSH does not know its curve; use P-256, P-384 or P-521"
        ) from None
    return SSHKeyPair(
        public_key=f"{public.decode('ascii')} {_one_word(comment)}",
        private_key=private.decode("ascii"),
    )


def _one_word(comment: str) -> str:
    return "".join(c if c.isprintable() and c != " " else "-" for c in comment)


def fingerprint_of(public_key: str) -> str:
    """Return what ``ssh-keygen -l`` shows: SHA-256, base 64 without padding."""
    raw = base64.b64decode(public_key.split(" ")[1])
    digest = base64.b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def files_of(key: SSHKeyPair) -> list[Dotfile]:
    """Return what a session finds below its home, where OpenSSH looks for it."""
    name = _NAMES[key.kind]
    public = f"{key.public_key}\n"
    return [
        Dotfile(path=f".ssh/{name}", permission="600", content=key.private_key),
        Dotfile(path=f".ssh/{name}.pub", permission="644", content=public),
        Dotfile(path=".ssh/authorized_keys", permission="600", content=public),
    ]


def _refuse(why: str) -> InvalidRequestError:
    return InvalidRequestError(f"private_key: {why}")
