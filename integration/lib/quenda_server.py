"""Starts `quenda serve` for a harness, with the same interface as the genuine server."""

import os
import pathlib

from integration.lib.process import ServerError, ServerProcess


def quenda_binary():
    """The binary under test: QUENDA_BIN, else the release build of the shared target directory."""
    if os.environ.get("QUENDA_BIN"):
        path = pathlib.Path(os.environ["QUENDA_BIN"])
    else:
        target = os.environ.get("CARGO_TARGET_DIR") or pathlib.Path.home() / ".cache" / "quenda-target"
        path = pathlib.Path(target) / "release" / "quenda"
    if not path.exists():
        raise ServerError(f"no quenda binary at {path}; build it or set QUENDA_BIN")
    return path


class QuendaServer(ServerProcess):
    """One Quenda member on `data_dir`. `args` are appended to the command line."""

    name = "quenda"
    binary = None  # another one than the usual

    def __init__(self, data_dir, extra_cfg=None, env=None, port=None, args=()):
        super().__init__(data_dir, extra_cfg, env, port)
        self.args = list(args)

    def command(self):
        return [str(self.binary or quenda_binary()), "serve", "--config", str(self.cfg_path), *self.args]
