"""Every route, in two listeners: people and programs; nodes."""

from __future__ import annotations

import re
from typing import Any

from backendai_hub.handlers.accounts import (
    AccountSeriesHandler,
    AccountsHandler,
    AccountStateHandler,
    AccountTableHandler,
    CheckHandler,
    EndLoginsHandler,
    LogoutHandler,
    PasswordHandler,
    RequireChangeHandler,
    ResetHandler,
    UnlockHandler,
    VerifyHandler,
)
from backendai_hub.handlers.agent_summaries import AgentSummariesHandler
from backendai_hub.handlers.agents import (
    AssignmentsHandler,
    EnrollHandler,
    LogParcelHandler,
    MeasuresHandler,
    RenewHandler,
    ReportHandler,
    RoutesHandler,
)
from backendai_hub.handlers.audit import (
    AuditExportHandler,
    AuditHandler,
    AuditVerifyHandler,
)
from backendai_hub.handlers.base import APIHandler
from backendai_hub.handlers.explanations import DryRunHandler, WhyHandler
from backendai_hub.handlers.file_contents import CONTENT_HANDLERS
from backendai_hub.handlers.files import FILE_HANDLERS
from backendai_hub.handlers.folders import FOLDER_HANDLERS
from backendai_hub.handlers.images import (
    AliasesHandler,
    ForgetImageHandler,
    InstallImageHandler,
    InstallsHandler,
    RescanHandler,
    UntagImageHandler,
)
from backendai_hub.handlers.live_usage import LiveUsageHandler, SessionUsageHandler
from backendai_hub.handlers.logins import (
    ActivateHandler,
    LoginsHandler,
    LoginTokenHandler,
    OwnLoginsHandler,
)
from backendai_hub.handlers.nodes import AgentHandler, AgentsHandler
from backendai_hub.handlers.nouns import NOUN_HANDLERS
from backendai_hub.handlers.operators import (
    DrainHandler,
    EndSessionsHandler,
    FreezeHandler,
    HoldHandler,
    PriorityHandler,
    QueueHandler,
    ReleaseHandler,
    UndrainHandler,
    UnfreezeHandler,
)
from backendai_hub.handlers.preemptions import (
    PreemptionsHandler,
    PreemptionTrialHandler,
)
from backendai_hub.handlers.sessions import (
    MeHandler,
    ResourcesHandler,
    SessionEventsHandler,
    SessionHandler,
    SessionHistoryHandler,
    SessionLogHandler,
    SessionsHandler,
    SpawnedByKeyHandler,
    SpawnedHandler,
    TerminateHandler,
    VersionHandler,
)
from backendai_hub.handlers.shares import SharesHandler, UsageHistoryHandler
from backendai_hub.handlers.simulations import ExportHandler, SimulateHandler
from backendai_hub.handlers.spec import SpecHandler
from backendai_hub.handlers.ssh_keys import SSHKeyHandler
from backendai_hub.handlers.storage import STORAGE_HANDLERS
from backendai_hub.handlers.streams import EventsHandler
from backendai_hub.handlers.tenancy import (
    DomainDotfilesHandler,
    GroupAccessHandler,
    KeypairDotfilesHandler,
    KeypairSecretHandler,
    MembersHandler,
    PresetCheckHandler,
    ProjectDotfilesHandler,
    UsageHandler,
)
from backendai_hub.handlers.uploads import UPLOAD_HANDLERS

API: tuple[type[APIHandler], ...] = (
    MembersHandler,
    DomainDotfilesHandler,
    ProjectDotfilesHandler,
    KeypairDotfilesHandler,
    SSHKeyHandler,
    KeypairSecretHandler,
    GroupAccessHandler,
    SharesHandler,
    UsageHistoryHandler,
    PresetCheckHandler,
    UsageHandler,
    AgentHandler,
    DrainHandler,
    UndrainHandler,
    FreezeHandler,
    UnfreezeHandler,
    QueueHandler,
    PreemptionTrialHandler,
    PreemptionsHandler,
    PriorityHandler,
    EndSessionsHandler,
    HoldHandler,
    ReleaseHandler,
    RescanHandler,
    AliasesHandler,
    ForgetImageHandler,
    UntagImageHandler,
    InstallImageHandler,
    InstallsHandler,
    AuditHandler,
    AuditExportHandler,
    AuditVerifyHandler,
    *UPLOAD_HANDLERS,
    *FILE_HANDLERS,
    *CONTENT_HANDLERS,
    *FOLDER_HANDLERS,
    *STORAGE_HANDLERS,
    *NOUN_HANDLERS,
    VersionHandler,
    MeHandler,
    ResourcesHandler,
    SessionsHandler,
    DryRunHandler,
    SessionHandler,
    TerminateHandler,
    WhyHandler,
    ExportHandler,
    SimulateHandler,
    SessionEventsHandler,
    SessionHistoryHandler,
    SessionLogHandler,
    SessionUsageHandler,
    LiveUsageHandler,
    EventsHandler,
    SpawnedHandler,
    SpawnedByKeyHandler,
    AgentsHandler,
    AgentSummariesHandler,
    AccountsHandler,
    AccountSeriesHandler,
    AccountTableHandler,
    AccountStateHandler,
    VerifyHandler,
    CheckHandler,
    PasswordHandler,
    ResetHandler,
    RequireChangeHandler,
    UnlockHandler,
    LogoutHandler,
    EndLoginsHandler,
    LoginsHandler,
    LoginTokenHandler,
    OwnLoginsHandler,
    RoutesHandler,
    SpecHandler,
)

PAGES: tuple[type[APIHandler], ...] = (ActivateHandler,)
"""For people; the console takes whatever path is left."""

AGENTS: tuple[type[APIHandler], ...] = (
    EnrollHandler,
    RenewHandler,
    AssignmentsHandler,
    ReportHandler,
    MeasuresHandler,
    LogParcelHandler,
)


def patterns(
    handlers: tuple[type[APIHandler], ...], prefix: str
) -> list[tuple[str, Any]]:
    """Build tornado's patterns; ``{name}`` is one path segment."""
    return [
        (
            re.escape(prefix) + re.sub(r"\{[a-z_]+\}", "([^/]{1,200})", handler.path),
            handler,
        )
        for handler in handlers
    ]
