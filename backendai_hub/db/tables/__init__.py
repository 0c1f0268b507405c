"""Every table, in one metadata. Rows never leave the ``db`` room."""

from backendai_hub.db.tables.base import Base
from backendai_hub.db.tables.history import AccountRow, EventRow
from backendai_hub.db.tables.nodes import (
    AgentRow,
    DeviceRow,
    EnrollTokenRow,
    ImageRow,
    VersionRow,
)
from backendai_hub.db.tables.sessions import (
    AllocationRow,
    ContainerRow,
    LedgerRow,
    SecretRow,
    SessionRow,
)
from backendai_hub.db.tables.tenancy import DomainRow, ProjectRow, UserRow

__all__ = [
    "AccountRow",
    "AgentRow",
    "AllocationRow",
    "Base",
    "ContainerRow",
    "DeviceRow",
    "DomainRow",
    "EnrollTokenRow",
    "EventRow",
    "ImageRow",
    "LedgerRow",
    "ProjectRow",
    "SecretRow",
    "SessionRow",
    "UserRow",
    "VersionRow",
]
