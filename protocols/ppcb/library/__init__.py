"""The private contextual bandit as a Python class: predict, late rewards, arms that come and go, save and load.

bandit                 what a user calls
    arguments          what the calls may be given
    names              of arms and of a frame's columns
    fitting            settings that hold for as many contexts as are learned from
service                what a call does here, once its arguments were checked
    rounds, propensity the same among the parties, and the clients beside them
    decisions, saved   what is held between calls, and the same on disk
    journal            what was told after a save
    place              where the parties live: all in this process, or one party's end of a network
offline_evaluation     what a bandit would have earned, from a log
"""
