"""Loads zkpython from the folder that is the first argument (see ../install)."""

import os
import sys


def load():
    sys.path.insert(0, sys.argv.pop(1))
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    import iobase  # noqa: F401 - only for its symbol
    sys.setdlopenflags(os.RTLD_NOW)
    import zookeeper
    zookeeper.set_debug_level(zookeeper.LOG_LEVEL_ERROR)
    return zookeeper
