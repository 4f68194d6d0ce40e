"""Three clinics learn together which treatment to offer, and none of them shows its patients' data to the others.

A notebook in a script; its first cell says how to run it.
"""

# %% [markdown]
# In the project's folder, `scripts/test` or `scripts/demo` makes `.venv` the first time.  Then
#
#     .venv/bin/python docs/tutorial.py
#
# runs the whole and prints what each cell finds, in some ten seconds.  To go cell by cell, open this file in an editor
# that knows `# %%` (VS Code, PyCharm, Spyder; Jupyter with jupytext) and choose `.venv/bin/python` as its interpreter.
#
# Each clinic measures other things of the same patient: twelve numbers in all, four at each.  A computer at the desk
# (the *puller*) is to name one of four treatments, and weeks later an insurer (the *payer*) knows whether it helped.
# Nobody may see a whole patient, and nobody but the desk may see the choices.  Here all of them live in this process;
# the same class is one clinic's end when each runs on a machine of its own.

# %%
import tempfile
from pathlib import Path

import numpy as np

from masked_bandits import (
    ConfigError,
    PrivateContextualBandit,
    RecordedLog,
    eta_per_step,
    evaluate_offline,
    replay,
    synthetic_linear,
)

patients = synthetic_linear(arms=4, dim=12, rows=3000, seed=7)
world = patients.episode(600, seed=1)  # 600 visits, and whether each treatment would help

bandit = PrivateContextualBandit(n_arms=4, dim=12, eps=0.2, parties=3, steps=5000, seed=2024)
print(bandit)

# %% [markdown]
# A visit.  The three blocks of the context are shared, the arms are scored and the largest found without anybody
# seeing a score.  With probability eps a uniform arm is lifted above the others, and not even the parties know when.

# %%
told = bandit.predict(world.contexts[0])
print(f"offer treatment {told.arm}; decision {told.decision_id}; its propensity lies in {tuple(told.propensity)}")

# %% [markdown]
# The propensity is an interval.  The exact number would be 0.85 for the best arm and 0.05 for any other, so it would
# name the best arm of this patient, which is what exploration hides.  How much it hides is a number:

# %%
print(f"one choice is {eta_per_step(4, 0.2):.2f}-differentially private, against everyone but the dealer")

# %% [markdown]
# Rewards come late and in any order.  Each names its decision; the patient's data are still there, as shares.  `steps`
# above is how many visits will be learned from: the numbers get as many bits as that takes.

# %%
visits = np.arange(1, 41)
several = bandit.predict(world.contexts[visits])  # forty patients, in the rounds of one
order = np.random.default_rng(0).permutation(40)
for start in range(0, 40, 10):
    now = order[start : start + 10]
    bandit.learn(decision_id=several.decision_id[now], reward=world.outcomes[visits[now], several.arm[now]])
print(f"learned from {bandit.learned} decisions, waiting for {bandit.unpaid}")

# %% [markdown]
# A doctor may decide otherwise.  The desk then says which treatment was given, as a share: the clinics learn that this
# decision was overridden, not by what.

# %%
given = (told.arm + 1) % 4
bandit.learn(action=given, reward=world.outcomes[0, given], decision_id=told.decision_id)

# %% [markdown]
# What was recorded before the system existed is worth something too.

# %%
past = patients.episode(200, seed=3)
old_arms = np.random.default_rng(1).integers(4, size=200)
bandit.partial_fit(old_arms, past.outcomes[np.arange(200), old_arms], past.contexts)

# %% [markdown]
# Treatments come and go.  Numbers stay: the new one is 4, and where 2 was, a gap remains.

# %%
new = bandit.add_arm()
bandit.remove_arm(2)
instead = bandit.predict(world.contexts[50], eligible=[1, 3, new])
print(f"treatments {bandit.arms}; for a patient with an allergy to 0: {instead.arm}")

# %% [markdown]
# Mistakes are refused before anything is shared, with the cure.

# %%
for mistake in (
    lambda: bandit.predict(world.contexts[0], eligible=[2]),
    lambda: bandit.learn(decision_id=told.decision_id, reward=1.0),
):
    try:
        mistake()
    except ConfigError as error:
        print(f"refused: {error}")

# %% [markdown]
# In the evening each clinic writes its own shares into a file that only it can read.  One clinic's file says nothing.

# %%
with tempfile.TemporaryDirectory() as folder:
    bandit.save(folder)
    for path in sorted(Path(folder).glob("*/*.npz")):
        print(f"{path.parent.name:8} {path.stat().st_size:6,} bytes, mode {path.stat().st_mode & 0o777:o}")
    bandit.close()
    bandit = PrivateContextualBandit.load(folder, seed=2024)
print(bandit)

# %% [markdown]
# Who has learned what so far?  Everything that left the shares is a row.  Had `reveal_propensity=True` been asked for,
# it would be one as well.

# %%
print(bandit.ledger.table())
print(f"{bandit.cost.rounds:,} rounds, {bandit.cost.opened_bytes / 1e6:.1f} MB from each clinic to each other")

# %% [markdown]
# Is it as good as a bandit that sees everything?  Replay a log of uniformly chosen treatments with both, from the
# start, with the same coins: a row counts where the bandit chooses what the log has.

# %%
rows = patients.episode(3000, seed=9)
logged = np.random.default_rng(5).integers(4, size=3000)
log = RecordedLog(rows.contexts, logged, rows.outcomes[np.arange(3000), logged], np.full(3000, 0.25))

fresh = PrivateContextualBandit(n_arms=4, dim=12, eps=0.2, parties=3, seed=8)
found = evaluate_offline(fresh, log, batch=4)
clear = list(replay(fresh.twin(), log, fresh.coins(), batch=4))  # only a simulation knows its coins

assert [record.step for record in found.records] == [record.step for record in clear]
print(f"{found.matches} of {len(log)} rows count: average reward {found.estimate:.3f} +- {found.standard_error:.3f}")
late = [float(record.rewards[0]) for record in found.records[-300:]]
print(f"in the last 300 of them {np.mean(late):.3f}; the log's own was {log.rewards.mean():.3f}")
print("the plaintext twin counts the same rows and earns the same")
print(fresh.ledger.table())
