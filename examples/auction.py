"""Sealed-bid auctions of one item after another: the highest bid wins, and pays what the second highest said.

K bidders, who are clients, share their bids.  Let b_i be the bid of bidder i, in whole cents; o_i = 1 for the one with
the largest bid (a dealt permutation breaks ties) and 0 for all others:

    bidder i               computing parties                         seller               regulator
    b_i  -- shares -->      1-4  o = argmax b
                            5    r_i = b_i - o_i b_i,  v = sum o_i b_i       the bids that lost, and the one that won
                            6-9  s = argmax r   10  p = sum s_i r_i          the price
                            winner, p  ------------------------>     sells
                            surplus += v - p
    at the end              surplus  ------------------------------------------->         what all winners saved

A bid that lost is never opened, nor is by how much the winner would have paid more; the regulator learns their sum.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc import ops
from mpc.client import ClientProgram, Receive, Send
from mpc.rounds import Input, Reveal, Rounds
from mpc.session import Session
from mpc.share import Share
from protocols.run.command import System, main
from protocols.run.program import Arrays, Counted, Desk, Ended, Facts, Program, Role, fingerprint
from protocols.run.report import Report, cost_text, costs, learned, ledger_json

SELLER, REGULATOR = "seller", "regulator"
BITS = 32  # of a bid, sign included: below 21 million


class Auctions(Program["Sales"]):
    """bids: (items, K) of whoever starts the run; a bidder has its own column."""

    name, unit = "auction", "item"

    def __init__(self, parties: int, items: int, bidders: int, bids: np.ndarray | None = None) -> None:
        super().__init__(parties, items)
        self.bidders = [f"bidder {i}" for i in range(bidders)]
        self.bids = np.zeros((items, bidders), np.int64) if bids is None else bids
        self.roles = (
            *(Role(name) for name in self.bidders), Role(SELLER, notes="sales.bin"), Role(REGULATOR, patient=True)
        )  # fmt: skip
        self.noted = (2,)

    def public(self) -> dict[str, Any]:
        return {"parties": self.parties, "items": self.decisions, "bidders": len(self.bidders)}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Auctions:
        return cls(**given)

    def facts(self) -> Facts:
        return {**self.public(), "bids": fingerprint(self.bids)}

    def blank(self) -> Auctions:
        return Auctions(**self.public())

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        return {name: {"bids": self.bids[:, i]} for i, name in enumerate(self.bidders)}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Auctioneers:
        return Auctioneers(session, self.bidders, kept, done)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        if role == SELLER:
            return seller(self.decisions, desk)
        return regulator() if role == REGULATOR else bidder(own["bids"][desk.start :])

    def result(self, ended: Ended) -> Sales:
        highest, second = np.sort(self.bids, axis=1)[:, :-3:-1].T
        winners, prices = ended.notes.T
        won = self.bids[np.arange(self.decisions), winners]  # a tie goes to any of the highest
        surplus = ended.left[REGULATOR]
        same = (won == highest).all() and (prices == second).all() and surplus == (highest - second).sum()
        return Sales(ended.notes, surplus, bool(same), ended)


def bidder(bids: np.ndarray) -> ClientProgram:
    """Shares a bid for each item that is left."""
    for bid in bids:
        yield Send(bid)


def seller(items: int, desk: Desk) -> ClientProgram:
    """Learns who gets each item, and for how much; a note of it outlives a crash."""
    for _ in range(desk.start, items):
        desk.note((yield Receive((2,))))


def regulator() -> ClientProgram:
    """Learns one number at the end."""
    return int((yield Receive()))


class Auctioneers:
    """The computing parties: they hold shares of the surplus."""

    def __init__(self, session: Session, bidders: list[str], kept: Arrays | None, done: int) -> None:
        self.session, self.bidders, self.done = session, bidders, done
        self.surplus = session.constant(0, 0) if kept is None else Share(session, kept["surplus"], 0)

    def turn(self) -> None:
        self.surplus = self.surplus + self.session.run(self.sell())
        self.done += 1

    def finish(self) -> None:
        self.session.run(self.report())

    def state(self) -> Arrays:
        return {"surplus": self.surplus.words}

    def sell(self) -> Rounds[Share]:
        """[what the winner of one item saves].  Cost: 10 rounds, and a hop from each bidder and to the seller."""
        session = self.session
        b = ops.stack((yield tuple(Input(name) for name in self.bidders)))
        o = yield from ops.argmax(session, b, score_bits=BITS)
        won = yield from ops.product(session, o, b)
        r = b - won
        s = yield from ops.argmax(session, r, score_bits=BITS)
        p = (yield from ops.product(session, s, r)).sum()
        winner = (o * np.arange(len(self.bidders))).sum()
        yield Reveal(ops.stack([winner, p]), to=SELLER, what="winner and price", why="the item is sold")
        return won.sum() - p

    def report(self) -> Rounds[None]:
        yield Reveal(self.surplus, to=REGULATOR, what="surplus of all items", why="the auctions are supervised")


@dataclass(frozen=True)
class Sales(Counted):
    """sales: (items, 2) winners and prices.  equal: whether auctions in the clear have the same."""

    sales: np.ndarray
    surplus: int
    equal: bool
    ended: Ended


class Auction(System):
    """On the command line."""

    name, summary, step = "auction", "sealed-bid second-price auctions", "item"
    about = "Sealed-bid auctions: {more}."
    examples = "example:\n  examples/auction.py {how} auction --items 20 --bidders 5\n"

    def add_problem(self, parser: ArgumentParser) -> None:
        parser.add_argument("--items", type=int, default=20, help="how many are sold (20)")
        parser.add_argument("--bidders", type=int, default=4, help="how many bid for each (4)")
        parser.add_argument("--parties", type=int, default=2, help="computing parties (2)")

    def steps(self, options: Namespace) -> int:
        return int(options.items)

    def clients(self, options: Namespace, *, processes: bool) -> tuple[str, ...]:
        return tuple(role.name for role in Auctions(2, 1, options.bidders).roles)

    def program(self, options: Namespace, *, processes: bool) -> Auctions:
        bids = np.random.default_rng(options.seed).integers(0, 100_000, (options.items, options.bidders))
        return Auctions(options.parties, options.items, options.bidders, bids)

    def report(self, options: Namespace, program: Program[Any], run: Sales) -> Report:
        facts = {
            "program": self.name, "items": len(run.sales), "seed": options.seed, "revenue": int(run.sales[:, 1].sum()),
            "surplus": run.surplus, "equal_twin": run.equal, **costs(run.ended, len(run.sales)),
            "ledger": ledger_json(run.ledger),
        }  # fmt: skip
        same = "as auctions in the clear" if run.equal else "NOT as auctions in the clear"
        text = [f"{len(run.sales)} items sold for {facts['revenue']:,} cents, {same}", *cost_text(facts, "sale"), ""]
        return Report(facts, "\n".join([*text, *learned(run.ledger)]), len(run.sales))


if __name__ == "__main__":
    main(Auction())
