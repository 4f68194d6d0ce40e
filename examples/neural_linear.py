"""A neural-linear bandit: a network that CrypTen computes on shares makes features, which our bandit takes as shares.

    owner p                   computing parties                                     puller          payer
    pixels  -- shares -->     CrypTen: h = relu(W x + b), f = clip(V h + c)
                              [f], the same words here, in fresh masks
                              private LinUCB on [f]: the arm  -------------------->  arm
                              [r]  <------------------------------------------------------------- r

Party 0 owns the network, which it learned from images of its own; nobody else learns W, b, V, c, and nobody f.  What
CrypTen opens is masked by its own randomness, which party 0 deals: see `mpc.interop.crypten` for what that is worth.

    scripts/setup_crypten
    .venv/bin/python examples/neural_linear.py plan neural-linear --parties 2 --steps 100 -o plan.json
    .venv/bin/masked offline deal plan.json --steps 100 --out material
    .venv-crypten/bin/python -m torch.distributed.run --nproc-per-node 4 --master-addr 127.0.0.1 \
        examples/neural_linear.py run neural-linear --parties 2 --steps 100 --material material --json

`run` without torchrun plays all roles in one process, where the network is computed in the clear.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bandits.environments import Environment, right_or_wrong, unit_rows
from bandits.linucb import LinUCB
from bandits.play import play
from mpc import Session, ops
from mpc.interop import crypten as interop
from mpc.share import Share
from protocols.ppcb.dealt_coins import choices
from protocols.ppcb.player import Owners, feature_blocks
from protocols.ppcb.report import report
from protocols.ppcb.run import Bandit, Run
from protocols.ppcb.settings import Policy, Settings
from protocols.run.options import System, main
from protocols.run.program import Arrays, Program, home_of
from protocols.run.report import Report

PIXELS, HIDDEN, CLASSES, LINEAR = 64, 64, 10, 20
OWN = 797  # images from which party 0 learned its network; the others are contexts


class Network(NamedTuple):
    w: np.ndarray
    b: np.ndarray
    v: np.ndarray
    c: np.ndarray

    def features(self, x: np.ndarray) -> np.ndarray:
        """In the clear."""
        return np.clip(np.maximum(x @ self.w.T + self.b, 0.0) @ self.v.T + self.c, 0.0, 1.0)


def trained(x: np.ndarray, classes: np.ndarray) -> Network:
    """Near 1 for the class of an image, near 0 for all others: random hidden units, then least squares."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(HIDDEN, PIXELS)) / 4.0
    b = rng.normal(size=HIDDEN) / 2.0 - w @ x.mean(axis=0)
    h = np.c_[np.maximum(x @ w.T + b, 0.0), np.ones(len(x))]
    v = np.linalg.solve(h.T @ h + 0.1 * np.eye(HIDDEN + 1), h.T @ np.eye(CLASSES)[classes]).T
    return Network(w, b, 2.0 * v[:, :-1], 2.0 * v[:, -1] - 0.5)  # the middle half of [0, 1] becomes all of it


class Digits(NamedTuple):
    """Contexts as pixels, as the network's features, and for comparison as linear ones: by PCA, rows of norm 1."""

    network: Network
    pixels: Environment
    neural: Environment
    linear: Environment


def digits() -> Digits:
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images, labels = data.data[order] / data.data.max(), data.target[order]
    (own, x), (known, classes) = np.split(images, [OWN]), np.split(labels, [OWN])
    network, middle = trained(own, known), own.mean(axis=0)
    axes = np.linalg.svd(own - middle, full_matrices=False)[2][:LINEAR]
    contexts = {"pixels": x, "neural": network.features(x), "linear": unit_rows((x - middle) @ axes.T)}
    return Digits(network, **{name: right_or_wrong(name, rows, classes) for name, rows in contexts.items()})


class NeuralLinear(Bandit):
    """The bandit on the network's features.  digits, images: of whoever starts the run."""

    name = "neural-linear"
    digits: Digits
    images: np.ndarray  # (steps, pixels)

    @classmethod
    def on_digits(cls, settings: Settings, *, parties: int, steps: int, seed: int) -> NeuralLinear:
        known = digits()
        made = cls.on(known.neural, settings, parties=parties, steps=steps, seed=seed)
        assert isinstance(made, NeuralLinear)
        made.digits, made.images = known, known.pixels.episode(steps, seed).contexts  # the same rows in the same order
        return made

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """Each owner its pixels, party 0 the network too, the payer what every arm would have paid."""
        own: dict[str, Arrays] = dict(super().private(key))
        for party, block in enumerate(feature_blocks(PIXELS, self.parties)):
            own[home_of(party)] = {"pixels": self.images[:, block]}
        return {**own, home_of(0): {**own[home_of(0)], **self.digits.network._asdict()}}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Viewers:
        return Viewers(session, self.settings, own, kept, done)


class Viewers(Owners):
    """Owners of pixels, whose contexts are what the network says of them."""

    def __init__(
        self, session: Session, settings: Settings, own: Mapping[int, Arrays], kept: Arrays | None, done: int
    ) -> None:  # fmt: skip
        super().__init__(session, settings, {}, done=done, kept=kept)
        self._own, self._layers = own, None
        if len(session.hosted) == 1:
            self._crypten = interop.join(session.transport)
            self._crypten.cfg.encoder.precision_bits = settings.fraction_bits
            self._layers = encrypted(self._crypten, own.get(0, {}))

    def contexts(self) -> Share:
        if self._layers is None:  # all parties are here
            x = np.concatenate([self._own[party]["pixels"][self.done] for party in sorted(self._own)])
            network = Network(*(self._own[0][name] for name in Network._fields))
            features = self.session.share(network.features(x), owner=0, scale=self.settings.fraction_bits)
        else:
            with self._crypten.no_grad():
                features = interop.share_of(self.session, self._layers(interop.tensor_of(self._pixels())))
        return features.reshape(1, 1, CLASSES)

    def _pixels(self) -> Share:
        blocks = feature_blocks(PIXELS, self.session.parties)
        return ops.concat([
            self.session.share(
                self._own[party]["pixels"][self.done] if party in self._own else None, owner=party,
                shape=(block.stop - block.start,), scale=self.settings.fraction_bits,
            )
            for party, block in enumerate(blocks)
        ]).reshape(1, PIXELS)  # fmt: skip


def encrypted(crypten: Any, network: Arrays) -> Any:
    """The network on CrypTen's shares; only party 0 knows more of it than its shape."""
    layers = [crypten.nn.Linear(PIXELS, HIDDEN), crypten.nn.Linear(HIDDEN, CLASSES)]
    for layer, (weight, bias) in zip(layers, (("w", "b"), ("v", "c"))):
        for part, name in (("weight", weight), ("bias", bias)):
            given = layer._parameters[part].detach().double()
            if name in network:
                given.copy_(given.new_tensor(network[name]))
            layer.set_parameter(part, given)
    first, second = layers
    model = crypten.nn.Sequential(first, crypten.nn.ReLU(), second, crypten.nn.Hardtanh(0.0, 1.0))
    return model.encrypt(src=0)


def beside_linear(run: Run, linear: Environment, seed: int) -> float:
    """Average reward of the same policy in the clear, with the same coins, on linear features of the same contexts."""
    given, coins = run.settings, run.ended.coins
    if coins is None:
        return math.nan
    own = choices(coins.key, run.ended.items, range(run.steps), given, steps=coins.per_block)
    policy = LinUCB(1, CLASSES, LINEAR, ridge=given.ridge, alpha=given.alpha)
    return float(np.mean([record.rewards for record in play(policy, [linear.episode(run.steps, seed)], own)]))


class NeuralLinearSystem(System):
    """On the command line."""

    name, summary, draws_reference = "neural-linear", "a bandit on features from CrypTen's encrypted network", False

    def add_problem(self, parser: ArgumentParser) -> None:
        parser.add_argument("--steps", type=int, default=300, help="contexts to decide on (300)")
        parser.add_argument("--eps", type=float, default=0.05, help="how often to explore (0.05)")
        parser.add_argument("--alpha", type=float, default=1.0, help="optimism of LinUCB (1)")

    def steps(self, options: Namespace) -> int:
        return int(options.steps)

    def program(self, options: Namespace, *, processes: bool) -> NeuralLinear:
        given = settings_of(options)
        return NeuralLinear.on_digits(given, parties=options.parties, steps=options.steps, seed=options.seed)

    def planned(self, options: Namespace) -> NeuralLinear:
        return NeuralLinear(
            settings_of(options).for_run(options.parties, options.steps), options.parties, options.steps
        )

    def report(self, options: Namespace, program: Program[Any], run: Run) -> Report:
        assert isinstance(program, NeuralLinear)
        linear, shown = beside_linear(run, program.digits.linear, options.seed), report(run)
        facts = {"linear_average_reward": None if math.isnan(linear) else linear}
        said = "" if math.isnan(linear) else f"the same policy on linear features, in the clear: {linear:.4f}\n"
        return replace(shown, document={**shown.document, **facts}, text=said + shown.text)


def settings_of(options: Namespace) -> Settings:
    """Features lie in [0, 1], so that a block of them has norm at most the root of their number."""
    bound = math.sqrt(-(-CLASSES // options.parties))
    return Settings(
        CLASSES, CLASSES, options.eps, policy=Policy.LINUCB, alpha=options.alpha, bound=bound, owners=options.parties
    )  # fmt: skip


if __name__ == "__main__":
    main(NeuralLinearSystem())
