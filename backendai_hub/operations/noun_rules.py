"""Which rules belong to which noun."""

from __future__ import annotations

from functools import cache

from backendai_hub.core.nouns import Noun
from backendai_hub.operations.folder_rules import FolderRules
from backendai_hub.operations.keypair_rules import KeypairRules
from backendai_hub.operations.reservation_rules import ReservationRules
from backendai_hub.operations.rules import Rules
from backendai_hub.operations.site_rules import (
    ImageRules,
    PolicyRules,
    PresetRules,
    RegistryRules,
    ResourceGroupRules,
    SlotTypeRules,
)
from backendai_hub.operations.tenant_rules import DomainRules, ProjectRules
from backendai_hub.operations.user_rules import UserRules

_RULES: dict[str, type[Rules]] = {
    "domain": DomainRules,
    "project": ProjectRules,
    "user": UserRules,
    "keypair": KeypairRules,
    "keypair-policy": PolicyRules,
    "user-policy": PolicyRules,
    "project-policy": PolicyRules,
    "resource-group": ResourceGroupRules,
    "preset": PresetRules,
    "reservation": ReservationRules,
    "slot-type": SlotTypeRules,
    "registry": RegistryRules,
    "image": ImageRules,
    "folder": FolderRules,
}


@cache
def rules_of(noun: Noun) -> Rules:
    """Return the rules of *noun*."""
    return _RULES[noun.name](noun)
