"""What an example's scripts of roles ask `masked` for, and the files that come of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from protocols.cli import main as masked
from protocols.run.config import Config, load


def written(place: Path, scripts: Mapping[str, str], folder: Path, steps: int) -> dict[str, Config]:
    """The file of each role, in a folder of its own.  scripts: by role as a folder is called.

    A stand-in for `masked` writes its words down; those of `config new` are then played here, which takes no start.
    """
    (stand_in := folder / "masked").write_text(
        '#!/bin/sh\nif [ "$2" = new ]; then printf "%s\\n" "$@" > new; else echo "$@" >> words; fi\n'
    )
    stand_in.chmod(0o755)
    environment, files, came_from = {**os.environ, "MASKED": str(stand_in), "STEPS": str(steps)}, {}, Path.cwd()
    for role, script in scripts.items():
        (home := folder / role).mkdir()
        subprocess.run([str(place / script)], cwd=home, env=environment, check=True, capture_output=True, timeout=300)
        assert (home / "words").read_text() == "config check role.toml\nparty --config role.toml\n"
        added = (home / "role.toml").read_text() if (home / "role.toml").exists() else ""
        (home / "role.toml").unlink(missing_ok=True)
        os.chdir(home)
        try:
            masked((home / "new").read_text().splitlines())
        finally:
            os.chdir(came_from)
        with (home / "role.toml").open("a") as file:
            file.write(added)
        files[role] = load(home / "role.toml")
        assert files[role].role.replace(" ", "-") == role
    return files


def meet(files: Mapping[str, Config]) -> None:
    """Everybody is called where he listens, and all have the same options."""
    for caller in files.values():
        assert caller.options == next(iter(files.values())).options
        for called, peer in caller.peers.items():
            if peer.address is not None:
                assert peer.address == files[called.replace(" ", "-")].listen
