"""Tables of cases in one test: all are run, and those that fail are raised together, each with its values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., Any]


def each(names: str, cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, in one test; stacked, it runs every combination.

    Only for cases that need no fixture of their own: all share those of the test.
    """
    keys = [name.strip() for name in names.split(",")]
    table = [dict(zip(keys, case if len(keys) > 1 else (case,), strict=True)) for case in cases]
    assert table, "no cases"

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):

            async def run(*args: Any, **fixtures: Any) -> None:
                failed = []
                for case in table:
                    try:
                        await test(*args, **case, **fixtures)
                    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases are run as well
                        failed.append(_with_case(error, case))
                _raise(failed, len(table))
        else:

            def run(*args: Any, **fixtures: Any) -> None:  # type: ignore[misc]
                failed = []
                for case in table:
                    try:
                        test(*args, **case, **fixtures)
                    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases are run as well
                        failed.append(_with_case(error, case))
                _raise(failed, len(table))

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        assert len(others) == len(signature.parameters) - len(keys), f"{test.__name__} does not take {names}"
        wrapped = functools.update_wrapper(run, test)
        wrapped.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _with_case(error: BaseException, case: dict[str, Any]) -> BaseException:
    values = ", ".join(f"{name}={value!a:.200}" for name, value in case.items())
    error.add_note(f"the case: {values}")
    return error


def _raise(failed: list[BaseException], number: int) -> None:
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {number} cases fail", failed)
