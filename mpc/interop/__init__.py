"""Shares of other frameworks, as ours and back: a module for each, which is the door to it."""
