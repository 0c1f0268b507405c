"""The SSH key that sessions get."""

from __future__ import annotations

import msgspec


class SSHKey(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a keypair's SSH key; all of it is empty without one.

    ``private_key`` is shown once, when it has been made here.
    """

    kind: str = ""
    public_key: str = ""
    fingerprint: str = ""
    changed_at: str | None = None
    private_key: str = ""


class SSHKeyRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A private key to use from now on, as OpenSSH writes it, without a passphrase."""

    private_key: str
