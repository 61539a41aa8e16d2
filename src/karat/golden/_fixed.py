"""A dict that is not changed, so that nothing gets into a golden set unchecked."""

from __future__ import annotations

from typing import NoReturn, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "a query of a golden set is changed by golden.judge(…), or by golden.remove(…) and "
        "golden.add(…)"
    )


class Fixed(dict[_K, _V]):
    """A dict that refuses to change.

    It is shown, compared, copied and written as JSON like any dict, which a mappingproxy is not.
    """

    def __reduce__(self) -> tuple[type, tuple[dict[_K, _V]]]:
        return Fixed, (dict(self),)


for _name in (
    *("__setitem__", "__delitem__", "__ior__"),
    *("update", "setdefault", "pop", "popitem", "clear"),
):
    setattr(Fixed, _name, _refuse)
