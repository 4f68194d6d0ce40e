"""Measuring the operations: what each costs beside its plaintext twin."""
