"""What a computing party of SAMBA on shares can guess, which is to be nothing.  numpy only.

In each step it is sent one word for each owner, its share of the owner's score, and it knows whose it is.  Two guessers
say who is pulled: one takes the owner of the largest word, as Comp does with scores; the other learned from the bits of
words while it was told who was pulled.  Beside them stands a guesser without words, who names the owner pulled most so
far.  From scores themselves the first is right in every step that ends in a largest score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_WORD_BITS = 64
_RIDGE = 1e3


@dataclass(frozen=True)
class Guesses:
    """Of `steps` steps, how many each guesser had right."""

    steps: int
    largest: int
    trained: int
    blind: int


def guess_pulls(words: np.ndarray, pulled: np.ndarray) -> Guesses:
    """words: (T, K) uint64.  pulled: (T,).  The first half of the steps is for training, the second is guessed."""
    half = len(words) // 2
    known, asked = pulled[:half], pulled[half:]
    owners = np.arange(words.shape[1])
    answers = (known[:, None] == owners).astype(np.float64)
    seen = _bits(words)
    weights = _regression(seen[:half], answers - answers.mean(axis=0))
    trained = (seen[half:] @ weights + answers.mean(axis=0)).argmax(axis=1)
    before = (pulled[:, None] == owners).cumsum(axis=0)[half - 1 : -1]
    return Guesses(
        len(asked), int((words[half:].argmax(axis=1) == asked).sum()), int((trained == asked).sum()),
        int((before.argmax(axis=1) == asked).sum()),
    )  # fmt: skip


def _bits(words: np.ndarray) -> np.ndarray:
    """(T, K 64) of -1 and 1."""
    shifts = np.arange(_WORD_BITS, dtype=np.uint64)
    bits = (words[..., None] >> shifts) & np.uint64(1)
    return bits.reshape(len(words), -1) * 2.0 - 1.0


def _regression(seen: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Ridge, in as many dimensions as there are steps: a step has more bits than a run has steps."""
    gram = seen @ seen.T + _RIDGE * np.eye(len(seen))
    return np.asarray(seen.T @ np.linalg.solve(gram, answers))
