"""The private contextual bandit as a Python class: predict, late rewards, arms that come and go, save and load."""
