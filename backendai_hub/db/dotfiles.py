"""Reading and writing dotfiles, and the bootstrap script of a keypair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.db.engine import Transaction
from backendai_hub.db.tables import DotfileRow, KeypairRow


async def list_dotfiles(
    connection: AsyncConnection, scope_ids: Sequence[str]
) -> dict[str, list[Dotfile]]:
    """Read the dotfiles of these scopes, by scope."""
    rows = await connection.execute(
        select(
            DotfileRow.scope_id,
            DotfileRow.path,
            DotfileRow.permission,
            DotfileRow.content,
        )
        .where(DotfileRow.scope_id.in_(scope_ids))
        .order_by(DotfileRow.path)
    )
    found: dict[str, list[Dotfile]] = {}
    for scope_id, path, permission, content in rows:
        found.setdefault(scope_id, []).append(
            Dotfile(path=path, permission=permission, content=content)
        )
    return found


async def put_dotfiles(
    tx: Transaction,
    kind: str,
    scope_id: str,
    files: Sequence[Dotfile],
    new_id: Callable[[], str],
) -> None:
    """Make *files* the dotfiles of a scope."""
    await tx.execute(
        delete(DotfileRow).where(
            DotfileRow.scope_kind == kind, DotfileRow.scope_id == scope_id
        )
    )
    if files:
        await tx.execute(
            insert(DotfileRow),
            [
                {
                    "id": new_id(),
                    "scope_kind": kind,
                    "scope_id": scope_id,
                    "path": file.path,
                    "permission": file.permission,
                    "content": file.content,
                    "modified_at": tx.now,
                }
                for file in files
            ],
        )


async def get_bootstrap(connection: AsyncConnection, keypair_id: str) -> str:
    """Read the bootstrap script of a keypair."""
    found = await connection.scalar(
        select(KeypairRow.bootstrap_script).where(KeypairRow.id == keypair_id)
    )
    return found or ""
