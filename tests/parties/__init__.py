"""Programs that tests run as parties: in threads over tcp, and as processes under the launcher or torchrun."""
