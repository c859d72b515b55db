"""Whether work grows in step with its input, counted in processor time of the thread: other programs do not add to it.

A promise such as "linear" holds on any machine and under any load, a number of seconds does not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TIMES = 4
ATTEMPTS = 3
SMALL_S = 0.02
"""Below this a measurement is mostly noise. Quadratic work on inputs of 100,000 characters takes far longer."""


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Whether four times the input takes much less than sixteen times the processor time, in one of three attempts."""
    for _ in range(ATTEMPTS):
        small = _processor_seconds(work, size)
        if _processor_seconds(work, TIMES * size) <= max(2 * TIMES * small, SMALL_S):
            return True
    return False


def _processor_seconds(work: Callable[[int], object], size: int) -> float:
    gc.disable()  # It would also look through the objects of all tests before, of which there may be millions.
    try:
        before = time.thread_time()
        work(size)
        return time.thread_time() - before
    finally:
        gc.enable()
