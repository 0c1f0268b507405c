"""What every part of the agent writes its log lines to."""

from __future__ import annotations

import logging
from typing import Any

Log = logging.Logger | logging.LoggerAdapter[Any]
