"""The route of the SSH key that sessions get."""

from __future__ import annotations

from backendai_hub.api.ssh_keys import SSHKey, SSHKeyRequest
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import ssh_keys


class SSHKeyHandler(APIHandler):
    """The SSH key of a keypair."""

    path = "api/keypairs/{reference}/ssh-key"

    @operation(Action.READ_SSH_KEY)
    async def get(self, reference: str) -> SSHKey:
        """Read the public part of the key that sessions get; empty without one."""
        return await ssh_keys.read_key(self.platform, self.principal, reference)

    @operation(Action.CHANGE_SSH_KEY)
    async def post(self, reference: str) -> SSHKey:
        """Make a new key, whose private part is shown this once."""
        return await ssh_keys.make_key(self.platform, self.principal, reference)

    @operation(Action.CHANGE_SSH_KEY)
    async def put(self, reference: str, body: SSHKeyRequest) -> SSHKey:
        """Use a private key that one has already."""
        return await ssh_keys.bring_key(self.platform, self.principal, reference, body)

    @operation(Action.CHANGE_SSH_KEY, status=204)
    async def delete(self, reference: str) -> None:
        """Give sessions no key from now on."""
        await ssh_keys.remove_key(self.platform, self.principal, reference)
