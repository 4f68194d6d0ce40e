"""Programs for parties with roles, and the command line."""
