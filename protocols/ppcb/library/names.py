"""How a user calls arms and features, where not by numbers: any hashable names, and the columns of a data frame.

Names are public: all parties know them, and they lie in clear beside the shares of a saved bandit.  Knows no share, and
no package of frames: what has named columns is one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpc.errors import RangeError

from .arguments import ArgumentError

_PLAIN = (str, int, float, bool, type(None))


@dataclass
class Names:
    """arms: the name of each number that was ever given, removed ones included; None where numbers are the names.

    features: the names of the columns, in the owners' order; None until a frame or the user says them.
    """

    arms: dict[int, Hashable] | None = None
    features: tuple[Hashable, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, arms: Any, features: Any) -> Names:
        """From what a bandit is made with."""
        named = None if arms is None else dict(enumerate(_different(arms, "arms")))
        return cls(named, None if features is None else tuple(_different(features, "features")))

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Names:
        """As they were saved."""
        arms, features = kept["arms"], kept["features"]
        return cls(
            None if arms is None else {number: _read(name) for number, name in arms},
            None if features is None else tuple(_read(name) for name in features),
        )

    def as_json(self) -> dict[str, Any]:
        """For a file; ArgumentError for a name that no file can hold."""
        return {
            "arms": None if self.arms is None else [[number, _plain(name)] for number, name in self.arms.items()],
            "features": None if self.features is None else [_plain(name) for name in self.features],
        }

    def count_arms(self, given: Any) -> Any:
        """How many arms: as many as have names, or as many as were asked for."""
        return _count(given, self.arms, "n_arms", "arms")

    def count_features(self, given: Any) -> Any:
        """The same for features."""
        return _count(given, self.features, "dim", "features")

    def arm(self, number: int) -> Any:
        """What an arm is called."""
        return number if self.arms is None else self.arms[number]

    def called(self, numbers: np.ndarray) -> np.ndarray:
        """The same for many; an array of objects where they have names."""
        if self.arms is None:
            return numbers
        names = np.empty(len(numbers), object)
        names[:] = [self.arms[number] for number in numbers.tolist()]
        return names

    def numbers(self, given: Any, present: Sequence[int]) -> Any:
        """The numbers of present arms, of one name or of many; as given where numbers are the names."""
        if self.arms is None or given is None:
            return given
        number = {name: at for at, name in self.arms.items() if at in present}
        if _hashable(given) and given in number:
            return number[given]
        wanted = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(wanted, (str, bytes)) or not isinstance(wanted, (Sequence, Set, Iterable)):
            wanted = [wanted]
        wanted = list(wanted)
        for name in wanted:
            if not _hashable(name) or name not in number:
                listed = ", ".join(map(repr, number))
                raise ArgumentError(f"there is no arm {{}}: the arms are {listed}", own=repr(name))
        return np.array([number[name] for name in wanted], np.int64)

    def one(self, given: Any, present: Sequence[int]) -> Any:
        """The number of one present arm."""
        if self.arms is None:
            return given
        return int(self.numbers([given], present)[0])

    def named(self, number: int, name: Hashable) -> None:
        """A new arm's name; call `check_new` before there is one."""
        if self.arms is not None:
            self.arms[number] = name

    def check_new(self, name: Any) -> None:
        """ArgumentError unless a new arm can be called so."""
        if self.arms is None:
            if name is not None:
                raise ArgumentError(
                    "this bandit's arms have numbers: leave {} out, or make it with arms=", own=repr(name)
                )
            return
        if not _is_name(name):
            raise ArgumentError("an arm is called by a hashable name, not {}", own=repr(name))
        if name in self.arms.values():
            raise ArgumentError("there is or was an arm {}: names are given once, choose another", own=repr(name))

    def columns(self, given: Any) -> tuple[Any, tuple[Hashable, ...] | None]:
        """Contexts as numbers, and the names of a frame's columns; what has no names passes.

        RangeError for columns that are not the features, in their order: owners hold neighbouring ones, so a frame in
        another order would be another split of the data.
        """
        found = _columns_of(given)
        if found is None:
            return given, None
        counted = tuple(range(len(found)))
        if found == counted and self.features != counted:  # as a frame has them that was given none
            return given, None
        if self.features is not None and found != self.features:
            raise RangeError(_misplaced(found, self.features))
        if _moved(found, counted):
            raise RangeError(_misplaced(found, counted))
        try:
            return _values(given), found
        except (TypeError, ValueError):
            raise RangeError(_no_numbers(given, found)) from None


def _columns_of(given: Any) -> tuple[Hashable, ...] | None:
    """The names of a frame's columns, or of a row that was taken from one; a row's numbers may count other things."""
    if not hasattr(given, "to_numpy"):
        return None
    names = getattr(given, "columns", None)
    if names is None:
        found = tuple(getattr(given, "index", ()))
        named = all(isinstance(name, (str, tuple)) for name in found) or _moved(found, tuple(range(len(found))))
        return found if found and named else None
    return tuple(names) or None


def _moved(found: tuple[Hashable, ...], expected: tuple[Hashable, ...]) -> bool:
    """Whether these are the same names in another order."""
    return found != expected and set(found) == set(expected)


def _values(given: Any) -> np.ndarray:
    try:
        return np.asarray(given.to_numpy(dtype=np.float64, na_value=np.nan))
    except TypeError:  # a frame of another package
        return np.asarray(given.to_numpy(), np.float64)


def _misplaced(found: tuple[Hashable, ...], expected: tuple[Hashable, ...]) -> str:
    """Which columns are missing, too many, or in another place."""
    missing, more = [name for name in expected if name not in found], [name for name in found if name not in expected]
    parts = [
        f"{what} {', '.join(map(str, which))}" for what, which in (("lacks", missing), ("also has", more)) if which
    ]
    if twice := list(dict.fromkeys(str(name) for at, name in enumerate(found) if name in found[:at])):
        parts.append(f"has two columns {', '.join(twice)}")
    if not parts:
        moved = [str(name) for name, other in zip(found, expected) if name != other]
        parts = [f"has {', '.join(moved)} in another order"]
    return (
        f"the frame {' and '.join(parts)}: this bandit's features are {', '.join(map(str, expected))}, so give "
        f"frame[{list(expected)!r}]"
    )


def _no_numbers(given: Any, found: tuple[Hashable, ...]) -> str:
    """Which column holds something else."""
    for at, name in enumerate(found):
        column = given[name] if hasattr(given, "columns") else given.iloc[at : at + 1]
        try:
            _values(column)
        except (TypeError, ValueError):
            return f"column {name} holds no real numbers: encode it, such as by a column for each value"
    return "contexts are real numbers: convert the frame first"


def _different(given: Any, what: str) -> list[Hashable]:
    """Names as a list, all hashable and all different."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ArgumentError(f"{what} are a list of names, not {{}}", own=repr(given))
    names = given.tolist() if hasattr(given, "tolist") else list(given)
    for name in names:
        if not _is_name(name):
            raise ArgumentError(f"{what} have hashable names, not {{}}", own=repr(name))
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise ArgumentError(f"two {what} are called {{}}: give each a name of its own", own=repr(twice[0]))
    return names


def _count(given: Any, named: Any, number: str, names: str) -> Any:
    if given is None and named is None:
        raise ArgumentError(f"say how many: {number}=, or their names as {names}=")
    if named is None:
        return given
    if given is not None and given != len(named):
        raise ArgumentError(
            f"{number} is {{}} and {len(named)} {names} have names: leave {number} out", own=repr(given)
        )
    return len(named)


def _is_name(name: Any) -> bool:
    """Whether it can be found again: NaN is not even itself."""
    return name is not None and _hashable(name) and not (isinstance(name, float) and math.isnan(name))


def _hashable(name: Any) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _plain(name: Hashable) -> Any:
    """A name as JSON holds it; a tuple within a list of one."""
    if isinstance(name, tuple):
        return [[_plain(part) for part in name]]
    value = name.item() if isinstance(name, np.generic) else name
    if type(value) not in _PLAIN:
        raise ArgumentError("a name to be saved is text, a number, or a tuple of them, not {}", own=repr(name))
    return value


def _read(kept: Any) -> Hashable:
    return tuple(_read(part) for part in kept[0]) if isinstance(kept, list) else kept
