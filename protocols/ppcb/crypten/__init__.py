"""Algorithm 1 on CrypTen, the first paper's own ground, with our data, coins and twin.

bandit    what one party holds and does, as CrypTensors
party     a party's process
engine    a run beside ours
report    both as one document and as text
"""
