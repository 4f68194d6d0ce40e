"""The bandit as a service of parties on machines of their own: a turn serves whatever was asked by then.

    turn         what the parties do in a turn: who asked, who is paid, decide, learn
    feeds        what one role's programs ask of it, between two turns; kept where it must last
    program      the same as a `Program`, which `masked serve --config` plays beside each role

Knows turns and what waits between them; no HTTP.
"""
