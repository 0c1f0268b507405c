"""Every table, in one metadata. Rows never leave the ``db`` room."""

from backendai_hub.db.tables.base import Base
from backendai_hub.db.tables.folders import (
    FolderGrantRow,
    FolderRow,
    FolderTaskRow,
    InvitationRow,
    QuotaScopeRow,
    RemainRow,
    SessionMountRow,
    UploadRow,
)
from backendai_hub.db.tables.history import (
    AccountRow,
    AuditHeadRow,
    AuditRow,
    EventRow,
    LoginRow,
)
from backendai_hub.db.tables.images import (
    ImageAliasRow,
    ImageInstallRow,
    ImageRow,
    RegistryRow,
)
from backendai_hub.db.tables.nodes import (
    AgentRow,
    DeviceRow,
    EnrollTokenRow,
    VersionRow,
)
from backendai_hub.db.tables.operators import ReservationRow, StopRow
from backendai_hub.db.tables.preemptions import PreemptionRow, VictimRow
from backendai_hub.db.tables.scheduling import AttemptRow, ExplanationRow
from backendai_hub.db.tables.sessions import (
    AllocationRow,
    ContainerRow,
    DependencyRow,
    LedgerRow,
    LogRow,
    SecretRow,
    SessionRow,
)
from backendai_hub.db.tables.shares import GroupShareRow, UsageBucketRow
from backendai_hub.db.tables.tenancy import (
    DomainRow,
    DotfileRow,
    KeypairPolicyRow,
    KeypairRow,
    MembershipRow,
    PresetRow,
    ProjectPolicyRow,
    ProjectRow,
    ResourceGroupAccessRow,
    ResourceGroupRow,
    SlotTypeRow,
    SSHKeyRow,
    UserPolicyRow,
    UserRow,
)
from backendai_hub.db.tables.usage import ContainerUsageRow

__all__ = [
    "AccountRow",
    "AgentRow",
    "AllocationRow",
    "AttemptRow",
    "AuditHeadRow",
    "AuditRow",
    "Base",
    "ContainerRow",
    "ContainerUsageRow",
    "DependencyRow",
    "DeviceRow",
    "DomainRow",
    "DotfileRow",
    "EnrollTokenRow",
    "EventRow",
    "ExplanationRow",
    "FolderGrantRow",
    "FolderRow",
    "FolderTaskRow",
    "GroupShareRow",
    "ImageAliasRow",
    "ImageInstallRow",
    "ImageRow",
    "InvitationRow",
    "KeypairPolicyRow",
    "KeypairRow",
    "LedgerRow",
    "LogRow",
    "LoginRow",
    "MembershipRow",
    "PreemptionRow",
    "PresetRow",
    "ProjectPolicyRow",
    "ProjectRow",
    "QuotaScopeRow",
    "RegistryRow",
    "RemainRow",
    "ReservationRow",
    "ResourceGroupAccessRow",
    "ResourceGroupRow",
    "SSHKeyRow",
    "SecretRow",
    "SessionMountRow",
    "SessionRow",
    "SlotTypeRow",
    "StopRow",
    "UploadRow",
    "UsageBucketRow",
    "UserPolicyRow",
    "UserRow",
    "VersionRow",
    "VictimRow",
]
