"""How many decisions the scheduler makes per second, and what a snapshot costs.

    python benchmarks/plan/run.py [--agents 100 1000] [--sessions 4000] [--turns 3]

A pass of ``plan()`` decides about every session in the queue: whether the limits
allow it, on which node and which devices it starts, or in what words it waits. The
nodes have 8 GPUs each, the queue holds at most 100 different requests of many users,
every scope has a limit, and there are more requests than room, so that reasons are
written too. Beside it, in the same run, the least that any scheduler with these
arrays has to do: one scan over all nodes and the subtraction, without limits,
devices, reasons or names.

Each figure is printed as a line of JSON; a table follows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.db import sessions as rows
from backendai_hub.db.agents import insert_agent
from backendai_hub.db.engine import Database
from backendai_hub.db.migrate import upgrade
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    NodeState,
    PendingSession,
    Plan,
    Snapshot,
)
