"""The figures and tables of the papers, each from one command."""
