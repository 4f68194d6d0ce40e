"""Sealed-bid auctions of one item after another: the highest bid wins, and pays what the second highest said.

b_i is what bidder i, a client, says for an item, in whole cents; o_i = 1 for the largest (a dealt permutation breaks
ties), else 0.  Of the bids the seller learns the price, which is the second highest, without a name; the regulator
learns what all winners together would have paid beyond their prices.

    bidder i               computing parties                             seller           regulator
    b_i  -- shares -->      1-4  o = argmax b    5  r_i = b_i - o_i b_i
                            6-9  s = argmax r   10  p = sum s_i r_i
                            winner, p  ---------------------------->     sells
                            surplus += sum o_i b_i - p
    at the end              surplus  ------------------------------------------------>    supervises
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mpc import ConfigError, ops
from mpc.client import ClientProgram, Receive, Send
from mpc.rounds import Input, Reveal, Rounds
from mpc.session import Session
from mpc.share import Share
from protocols.run.options import System, main
from protocols.run.program import Arrays, Desk, Ended, Program, Role
from protocols.run.report import Report, plain_report

SELLER, REGULATOR = "seller", "regulator"
BITS, LARGEST = 32, 2.0**31 - 1  # of a bid in cents, sign included


class Auctions(Program["Sales"]):
    """bids: (items, K) of whoever starts the run; a bidder has its own column."""

    name, unit = "auction", "item"

    def __init__(self, parties: int, items: int, bidders: int, bids: np.ndarray | None = None) -> None:
        super().__init__(parties, items)
        self.bidders = [f"bidder {i}" for i in range(bidders)]
        self.bids = np.zeros((items, bidders), np.int64) if bids is None else bids
        self.roles = (*map(Role, self.bidders), Role(SELLER, notes="sales.bin"), Role(REGULATOR, patient=True))
        self.noted = (2,)  # of an item: winner and price

    def public(self) -> dict[str, Any]:
        return {"parties": self.parties, "items": self.decisions, "bidders": len(self.bidders)}

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
        (winners, prices), surplus = ended.notes.T, ended.left[REGULATOR]
        won = self.bids[np.arange(self.decisions), winners]  # a tie goes to any of the highest
        same = (won == highest).all() and (prices == second).all() and surplus == (won - prices).sum()
        return Sales(ended.notes, surplus, bool(same), ended)


def bidder(bids: np.ndarray) -> ClientProgram:
    """Shares a bid for each item that is left."""
    for bid in bids:
        yield Send(bid, bound=LARGEST)


def seller(items: int, desk: Desk) -> ClientProgram:
    """Learns who gets each item, and for how much; a note of it outlives a crash."""
    for _ in range(desk.start, items):
        desk.note((yield Receive((2,))))


def regulator() -> ClientProgram:
    """Learns one number at the end."""
    return int((yield Receive()))


class Auctioneers:  # the computing parties: they hold shares of the surplus
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
        b = ops.stack((yield tuple(Input(name) for name in self.bidders)))
        o = yield from ops.argmax(self.session, b, score_bits=BITS)
        won = yield from ops.product(self.session, o, b)
        r = b - won
        s = yield from ops.argmax(self.session, r, score_bits=BITS)
        p = (yield from ops.product(self.session, s, r)).sum()
        winner = (o * np.arange(len(self.bidders))).sum()
        yield Reveal(ops.stack([winner, p]), to=SELLER, what="winner and price", why="the item is sold")
        return won.sum() - p

    def report(self) -> Rounds[None]:
        yield Reveal(self.surplus, to=REGULATOR, what="surplus of all items", why="the auctions are supervised")


class Sales(NamedTuple):
    sales: np.ndarray  # (items, 2) winners and prices
    surplus: int
    equal: bool  # whether auctions in the clear have the same
    ended: Ended


class Auction(System):
    """On the command line."""

    name, summary, step = "auction", "sealed-bid second-price auctions", "item"

    def add_problem(self, parser: ArgumentParser) -> None:
        parser.add_argument("--items", type=int, default=20, help="how many are sold (20)")
        parser.add_argument("--bidders", type=int, default=4, help="how many bid for each (4)")

    def check(self, options: Namespace) -> None:
        if options.items < 1 or options.bidders < 2:
            raise ConfigError(f"{options.items} items and {options.bidders} bidders: at least 1 and 2")

    def program(self, options: Namespace, *, processes: bool) -> Auctions:
        bids = np.random.default_rng(options.seed).integers(0, 100_000, (options.items, options.bidders))
        return Auctions(options.parties, options.items, options.bidders, bids)

    def report(self, options: Namespace, program: Program[Any], run: Sales) -> Report:
        facts = {"revenue": int(run.sales[:, 1].sum()), "surplus": run.surplus, "equal_twin": run.equal}
        said = f"{facts['revenue']:,} cents, {'' if run.equal else 'NOT '}as auctions in the clear"
        return plain_report(program, facts, [said], run.ended)


if __name__ == "__main__":
    main(Auction())
