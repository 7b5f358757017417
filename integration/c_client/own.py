"""Programs of our own on the C client, compiled for each of its releases that are here."""

import pathlib
import subprocess

from integration.lib import asked

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-Wall", "-Wextra", "-Werror", "-std=gnu11", "-g"]
THREADED = ("api", "load", "failover")


def libraries(client):
    """Name → flags for the compiler, of the multi-threaded and of the single-threaded library."""
    debian = ["-I/usr/include/zookeeper"]
    source = [f"-I{client}/include", f"-I{client}/generated", f"-L{client}/.libs", f"-Wl,-rpath,{client}/.libs"]
    return {
        "3.8": (["-DTHREADED", *debian, "-lzookeeper_mt"], [*debian, "-l:libzookeeper_st.so.2"]),
        "3.9": (["-DTHREADED", *source, "-lzookeeper_mt"], [*source, "-lzookeeper_st"]),
    }


def run(client, folder, members, wanted=()):
    """Name of program, library and step → outcome."""
    outcomes = {}
    for library, (threaded, single) in libraries(client).items():
        for name in (*THREADED, "single"):
            if not wanted or name in wanted:
                program = compile_program(folder, name, library, threaded if name in THREADED else single)
                outcomes.update(asked.play(f"{name} {library}", [program], folder / f"servers-{name}-{library}", members))
    return outcomes


def compile_program(folder, name, library, flags):
    program = folder / f"{name}-{library}"
    subprocess.run(["gcc", *FLAGS, HERE / "programs" / f"{name}.c", "-o", program, *flags, "-lpthread"], check=True)
    return program
