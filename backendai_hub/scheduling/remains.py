"""What will come of what is left of a device: crumbs that nobody asks for are lost.

Whoever fits takes a part of a device, as often as they come; what is left then is
taken by whoever still fits, and so on until nobody does. So 0.45 of a device are worth
0.4 where people ask for 0.4 alone, and more where some ask for 0.05.
"""

from __future__ import annotations

from math import gcd
from typing import Final

import numpy as np

from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.scoring import FloatVector, IntVector

_FINEST: Final = 5
"""Parts are told apart by so many thousandths: few enough to reckon in every pass."""


def find_worth(parts: IntVector, often: FloatVector) -> FloatVector:
    """Return what 0, 1, 2 … 1000 thousandths that are left are worth, in thousandths.

    *parts* are what is asked of one device, each as *often* as the other says.
    """
    left = np.arange(MILLI + 1)
    parts, often = parts[often > 0], often[often > 0]
    step = max(_FINEST, gcd(MILLI, *parts.tolist()))
    sizes, places = np.unique(-(-parts // step), return_inverse=True)
    weights = np.bincount(places, often, len(sizes))
    shares, taken = np.cumsum(weights), np.cumsum(weights * sizes)
    found = np.zeros(MILLI // step + 1)
    fitting = np.searchsorted(sizes, np.arange(len(found)), "right").tolist()
    for amount, fit in enumerate(fitting):
        if fit:
            rest = weights[:fit] @ found[amount - sizes[:fit]]
            found[amount] = (taken[fit - 1] + rest) / shares[fit - 1]
    # Whole numbers add up to the same in any order.
    worth: FloatVector = np.rint(np.minimum(found[left // step] * step, left))
    return worth
