"""SSH keys: what is made, which ones people may bring, and where sessions find them."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_ssh_private_key,
)

from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.ssh_keys import (
    files_of,
    fingerprint_of,
    make_ssh_key,
    read_ssh_key,
)

OPENSSH = PrivateFormat.OpenSSH
PEM = PrivateFormat.TraditionalOpenSSL
LOCKED = """\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCmZwVyF9
BFXukH5xIYVstkAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIB2UdnSbNruZxGSq
+fp4yoFEdFFl/BRsTqm7pISxWUIcAAAAkI3jHmDhXEA+b2XpRZ30qYy2PLnuAjVP/PQq5E
OcuBrHmPXKNIirW28DYCf6XGSRsY+1OK9oicX3Rag/pr9JTDWOUn0yTBC0UhH+t3UZMSOx
S84ENZQ6pPLHNQxjt09ZfxPKG7fd4FX19nppAKZ1YfXjyDRSP1IaMXvSZgUlwRF1j/nDGE
4N6Gk73u3nH58jDw==
-----END OPENSSH PRIVATE KEY-----
"""
"""Made by ``ssh-keygen -t ed25519 -N words``, and used for nothing."""


def written(key, form=OPENSSH, encryption=None) -> str:
    how = encryption or NoEncryption()
    return key.private_bytes(Encoding.PEM, form, how).decode()


def make_rsa(p: int, q: int) -> rsa.RSAPrivateKey:
    """Make what looks like a key: whether its primes are prime would take minutes."""
    public = rsa.RSAPublicNumbers(65537, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, 3, 1, 1, 1, public)
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def test_a_key_made_here_is_one_that_openssh_reads():
    made = make_ssh_key("ada@backendai")
    assert made.kind == "ssh-ed25519"
    assert made.public_key.endswith(" ada@backendai")
    found = load_ssh_private_key(made.private_key.encode(), password=None)
    assert isinstance(found, ed25519.Ed25519PrivateKey)
    assert read_ssh_key(made.private_key, "ada@backendai").public_key == made.public_key


def test_no_two_keys_are_the_same():
    assert make_ssh_key("a").private_key != make_ssh_key("a").private_key


@pytest.mark.parametrize(
    ("key", "form", "kind", "file"),
    [
        (ed25519.Ed25519PrivateKey.generate(), OPENSSH, "ssh-ed25519", "id_ed25519"),
        (
            ec.generate_private_key(ec.SECP256R1()),
            PEM,
            "ecdsa-sha2-nistp256",
            "id_ecdsa",
        ),
        (
            ec.generate_private_key(ec.SECP384R1()),
            OPENSSH,
            "ecdsa-sha2-nistp384",
            "id_ecdsa",
        ),
        (rsa.generate_private_key(65537, 2048), PEM, "ssh-rsa", "id_rsa"),
    ],
)
def test_keys_of_the_usual_types_may_be_brought(key, form, kind, file):
    found = read_ssh_key(f"\n  {written(key, form)}  \n", "ada")
    assert found.kind == kind
    paths = [made.path for made in files_of(found)]
    assert paths == [f".ssh/{file}", f".ssh/{file}.pub", ".ssh/authorized_keys"]


def test_only_the_owner_reads_the_private_part():
    key = make_ssh_key("ada")
    private, public, door = files_of(key)
    assert (private.permission, private.content) == ("600", key.private_key)
    assert (public.permission, public.content) == ("644", f"{key.public_key}\n")
    assert door == Dotfile(
        path=".ssh/authorized_keys", permission="600", content=f"{key.public_key}\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a private key"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ada", "not a private key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "not a private key"),
        ("x" * (17 << 10), "17408 characters"),
        (LOCKED, "passphrase"),
        (
            written(
                rsa.generate_private_key(65537, 2048),
                PEM,
                BestAvailableEncryption(b"words"),
            ),
            "passphrase",
        ),
        (written(rsa.generate_private_key(65537, 1024), PEM), "1024 bits"),
        (written(make_rsa(3**3000, 5**3000), PEM), "11721 bits"),
        (written(dsa.generate_private_key(1024), PEM), "RSA, ECDSA and Ed25519"),
        (written(ec.generate_private_key(ec.SECP256K1()), PEM), "curve"),
    ],
)
def test_what_openssh_or_a_session_could_not_use_is_refused(text, why):
    with pytest.raises(InvalidRequestError) as refused:
        read_ssh_key(text, "ada")
    assert why in str(refused.value)
    assert len(text) < 200 or text[60:90] not in str(refused.value)


def test_a_comment_can_not_add_a_second_key():
    made = make_ssh_key("ada\nssh-ed25519 AAAA mallory")
    assert "\n" not in made.public_key
    assert len(made.public_key.split(" ")) == 3


def test_the_fingerprint_is_what_ssh_keygen_shows():
    """Checked once with ``ssh-keygen -l``."""
    public = (
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3"
        "B1Ea ada"
    )
    assert (
        fingerprint_of(public) == "SHA256:bbXpuKG6zhzdmnxq256TlqzFBzRl2f6OOg722cYNbU8"
    )
