"""LinUCB-DS and SpectralUCB-DS (Ciucanu, Delabrouille, Lafourcade and Soare 2020): classic, and on secret shares.

problems        arms and theta by name; constants: of the policy, as plain data
classic         as published, with Paillier: roles (the messages of each), messages, cast, run
mpc             on shares: shown and hidden (the rounds where arms are shown, or hidden), ranges (of the latter),
                settings, player (pull after pull), clients (DO and DC), dealt_coins (the reference's), run
attacks         what Comp, P, DC, or a computing party, makes of what it sees
report          a result as JSON and text; command: the options
"""
