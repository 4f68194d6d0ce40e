"""LinUCB-DS and SpectralUCB-DS on shares, arms shown to the computing parties or hidden from all.

shown, hidden    the rounds of each
player, clients  the computing parties; DO and DC
settings, ranges what all agree on, and how many bits fit; of hidden arms, the ranges
run              what a run asks of `protocols.run`; dealt_coins: its reference's coins
"""
