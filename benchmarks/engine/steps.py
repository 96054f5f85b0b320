"""Steps of a run that are taken once, when the first row asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Step(Generic[Result]):
    """A property worked out once. Where that failed, asking again fails in the same way at once."""

    def __init__(self, method: Callable[[Any], Result]):
        self._method = method
        self._name = f"_{method.__name__}_outcome"
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Result:
        outcomes = instance.__dict__
        if self._name not in outcomes:
            try:
                outcomes[self._name] = self._method(instance), None
            except Exception as error:
                outcomes[self._name] = None, error
        result, failure = outcomes[self._name]
        if failure is not None:
            raise failure
        taken: Result = result
        return taken
