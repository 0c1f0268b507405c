"""The client's part about SSH keys."""

from __future__ import annotations

from backendai_hub.api.ssh_keys import SSHKey
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transport import segment


class SSHKeys(Part):
    """See and change the SSH key that sessions of a keypair get."""

    async def read(self, keypair: str) -> SSHKey:
        """Return the public part; all of it is empty where there is none."""
        return await self._transport.get(_path(keypair), SSHKey, act_for=self._act_for)

    async def make(self, keypair: str) -> SSHKey:
        """Make a new key; its private part is shown this once."""
        return await self._transport.post(
            _path(keypair), {}, SSHKey, act_for=self._act_for
        )

    async def bring(self, keypair: str, private_key: str) -> SSHKey:
        """Use a private key that there is already."""
        return await self._transport.put(
            _path(keypair), {"private_key": private_key}, SSHKey, act_for=self._act_for
        )

    async def remove(self, keypair: str) -> None:
        """Give new sessions no key."""
        await self._transport.delete(_path(keypair), act_for=self._act_for)


def _path(keypair: str) -> str:
    return f"keypairs/{segment(keypair)}/ssh-key"
