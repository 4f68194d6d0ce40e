"""SAMBA: owners of one arm each, and a cloud that chooses among them: as published, and on shares.

policies        a score for each policy: a new one begins here
owners          what an owner holds, and which policies can be played
classic         as published: roles (the messages of each), masks, selecting, messages, cast, checkpoints, run
mpc             on shares: settings, program (the rounds), clients (owners and DC), dealt_coins (the twin's), run
attacks         what Comp, or a computing party, makes of what it sees
report          a result as JSON and text; command: the options
"""
