"""argparse as a user meets it: a mistake is one line with what may have been meant, and 1e6 is a number of steps."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .exits import say
from .terminal import fit, width_of

_WHOLE = "int", "a whole number, such as 500 or 1e3,"


class Parser(argparse.ArgumentParser):
    """What `argparse.ArgumentParser` is, for `masked` and for a script of one program; so are its sub-parsers."""

    _words: Sequence[str] = ()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.register("type", int, whole)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse here what is not known: who asked knows less of the options."""
        self._words = list(sys.argv[1:] if args is None else args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
            self.error(f"there is no {word}{_meant(word, self._options())}")
        return found, unknown

    def _options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]

    def _misspelt(self) -> str:
        """The first word that would be an option, if there were one like that."""
        words = [word.partition("=")[0] for word in self._words if word.startswith("--") and word != "--"]
        options = self._options()
        return next((word for word in words if not any(option.startswith(word) for option in options)), "")

    def format_help(self) -> str:
        """Also what is taken as it was written, such as examples, fits the terminal."""
        return fit(super().format_help(), width_of(sys.stdout))

    def error(self, message: str) -> NoReturn:
        """One line, and exit code 2.  What is missing may be there, and misspelt."""
        if "are required: " in message and (word := self._misspelt()):
            message = f"there is no {word}{_meant(word, self._options())}"
        say(f"error: {self.prog}: {message} ('{self.prog} --help' says what there is)")
        self.exit(2)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """What is no number is told with one that is."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type in (int, float, whole):
                kind, like = ("float", "a number, such as 0.5,") if action.type is float else _WHOLE
                raise argparse.ArgumentError(
                    action, f"invalid {kind} value: {arg_string!r}: {like} is wanted"
                ) from None
            raise

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [str(choice) for choice in action.choices or ()]
        if choices and value not in (action.choices or ()) and (meant := _meant(str(value), choices)):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{meant}")
        super()._check_value(action, value)


def whole(text: str) -> int:
    """A whole number as people write it: 1000, 1_000, 1,000, 1e3."""
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", text) else text
    for read in (int, float):
        try:
            number = read(plain)
        except ValueError:
            continue
        if number == (rounded := int(number) if abs(number) < 1e18 else 0):
            return rounded
    raise ValueError(f"{text!r} is no whole number")


def count_or_names(text: str) -> int | list[str]:
    """How many there are, or what they are called, with commas between them."""
    words = [word.strip() for word in text.split(",")]
    if len(words) > 1 and all(words):
        return words
    try:
        return whole(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"how many, or their names with commas between them, not {text!r}") from None


def _meant(word: str, words: Sequence[str]) -> str:
    """What of `words` may have been meant, if one is near."""
    near = difflib.get_close_matches(word, words, n=1)
    return f": did you mean {near[0]}?" if near else ""
