"""A news page and a reading app learn together which story to put on top, from clicks that come late or never.

The app knows what a reader likes, the page what is going on; neither shows the other.  Stories come and go, a click
comes some visits later, in any order, and a reader who does not click says nothing: after `PATIENCE` visits that is
taken for a no.  All in one process, with the object of the library; the readers are made up.

    python examples/news_page/page.py                 600 visits, some seconds
    python examples/news_page/page.py --visits 120    a look
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from masked_bandits import PrivateContextualBandit

LIKES = ["politics", "sports", "science", "culture"]  # the app's columns: what a reader reads elsewhere
MOMENT = ["morning", "evening", "weekend"]  # the page's columns
PATIENCE = 40  # visits until a story that was not clicked on counts as not clicked on
LATEST = 30  # visits until the last click comes
NEW_STORY = 60  # visits from one new story to the next; the eldest leaves where there would be more than AT_ONCE
AT_ONCE = 5


@dataclass
class Readers:
    """The world outside: who comes, and who clicks when."""

    seed: int = 1
    clicks: list[tuple[int, int]] = field(default_factory=list)  # (visit at which it comes, decision)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def comes(self) -> np.ndarray:
        """The next reader: (features,), each owner's part with a norm below 1."""
        likes = self._rng.dirichlet(np.full(len(LIKES), 0.4))
        moment = np.eye(len(MOMENT))[self._rng.integers(len(MOMENT))]
        return np.concatenate([likes, moment]) * 0.99

    def sees(self, visit: int, decision: int, story: str, reader: np.ndarray) -> None:
        """One that likes the topic of a story clicks on it, sooner or later."""
        if self._rng.random() < self.chance(story, reader):
            self.clicks.append((visit + int(self._rng.integers(1, LATEST)), decision))

    def chance(self, story: str, reader: np.ndarray) -> float:
        """Of a click, some time."""
        topic = LIKES.index(story.partition(" ")[0])
        return float(0.05 + 0.7 * reader[topic] + 0.1 * reader[len(LIKES) + topic % len(MOMENT)])

    def clicked(self, visit: int) -> list[int]:
        """The decisions whose clicks come now."""
        now = [decision for at, decision in self.clicks if at <= visit]
        self.clicks = [(at, decision) for at, decision in self.clicks if at > visit]
        return now


class Page:
    """What the page does at each visit."""

    def __init__(self, seed: int | None = None) -> None:
        self.headlines = self._written()
        self.bandit = PrivateContextualBandit(
            arms=[next(self.headlines) for _ in range(3)], features=LIKES + MOMENT, owners=[len(LIKES), len(MOMENT)],
            parties=2, eps=0.1, bound=1.0, steps=5000, seed=seed,
        )  # fmt: skip
        self.open: dict[int, int] = {}  # the visit of each decision that waits for a click
        self.shown: list[str] = []
        self.paid: list[tuple[int, float]] = []  # in the order in which the page learned of it

    @staticmethod
    def _written() -> Iterator[str]:
        number = 0
        while True:
            yield f"{LIKES[number % len(LIKES)]} {number}"
            number += 1

    def visit(self, visit: int, reader: np.ndarray) -> tuple[int, str]:
        """Which story this reader gets on top."""
        if visit and visit % NEW_STORY == 0:
            self.bandit.add_arm(next(self.headlines))
            if len(self.bandit.arms) > AT_ONCE:
                self.bandit.remove_arm(self.bandit.arms[0])  # clicks on it that are still to come change nothing
        told = self.bandit.predict(reader)
        self.open[told.decision_id] = visit
        self.shown.append(told.arm)
        return told.decision_id, told.arm

    def learn(self, visit: int, clicked: list[int]) -> None:
        """Clicks, however late and in whichever order; and of those that waited too long, that there is none."""
        late = [decision for decision, at in self.open.items() if visit - at >= PATIENCE and decision not in clicked]
        rewards = [(decision, 1.0) for decision in clicked] + [(decision, 0.0) for decision in late]
        if rewards:
            self.bandit.learn(decision_id=[each for each, _ in rewards], reward=[reward for _, reward in rewards])
        for decision, _ in rewards:
            del self.open[decision]
        self.paid += rewards


@dataclass(frozen=True)
class Day:
    """What came of it: the chance of a click for the stories that were shown, and for stories by chance."""

    page: Page
    chances: np.ndarray
    by_chance: np.ndarray

    def __str__(self) -> str:
        half, page = len(self.chances) // 2, self.page
        first, second = self.chances[:half].mean(), self.chances[half:].mean()
        return (
            f"chance of a click: {first:.3f} in the first half of the visits, {second:.3f} in the second; of stories "
            f"by chance {self.by_chance.mean():.3f}\n"
            f"{len(set(page.shown))} stories were shown, {len(page.bandit.arms)} are there now: "
            f"{', '.join(page.bandit.arms)}\n"
            f"{len(page.paid)} decisions were learned from, {len(page.open)} wait for a click\n\n"
            f"{page.bandit.ledger.table()}"
        )


def day(visits: int, seed: int | None = None) -> Day:
    """So many visits.  seed: of the page's bandit, for a day that can be repeated."""
    readers, page = Readers(), Page(seed)
    chances, by_chance = np.zeros(visits), np.zeros(visits)
    for visit in range(visits):
        reader = readers.comes()
        decision, story = page.visit(visit, reader)
        readers.sees(visit, decision, story, reader)
        chances[visit] = readers.chance(story, reader)
        by_chance[visit] = np.mean([readers.chance(each, reader) for each in page.bandit.arms])
        page.learn(visit, readers.clicked(visit))
    return Day(page, chances, by_chance)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--visits", type=int, default=600)
    parser.add_argument("--seed", type=int, help="of the page's bandit, for a day that can be repeated")
    options = parser.parse_args()
    print(day(options.visits, options.seed))


if __name__ == "__main__":
    main()
