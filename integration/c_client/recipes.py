"""The lock for C that comes with ZooKeeper, with its own test program, unmodified.

There is a queue too, whose test program does not compile: its header declares a function otherwise than it is defined.
"""

import subprocess

from integration.c_client import cppunit


def build(bench, source, name):
    recipe = source / "zookeeper-recipes" / f"zookeeper-recipes-{name}" / "src" / "main" / "c"
    includes = [f"-I{recipe}/include", f"-I{bench.client}/include", f"-I{bench.client}/generated", "-DTHREADED"]
    library = bench.folder / f"zoo_{name}.o"
    subprocess.run(["gcc", "-w", "-c", *includes, recipe / "src" / f"zoo_{name}.c", "-o", library], check=True)
    program = bench.folder / f"zk{name}test"
    tests = sorted((recipe / "tests").glob("*.cc"))
    # They forget <time.h>, which the C library's other headers once brought.
    subprocess.run(["g++", "-w", "-DUSE_STATIC_LIB", "-include", "time.h", *includes, *tests, library, "-o", program, f"-L{bench.client}/.libs",
                    f"-Wl,-rpath,{bench.client}/.libs", "-lzookeeper_mt", "-lcppunit", "-lpthread"], check=True)
    return recipe, program


def run(bench, source):
    outcomes = {}
    for name in ("lock",):
        recipe, program = build(bench, source, name)
        for suite, tests in cppunit.suites(recipe).items():
            status, text = bench.run(f"recipe-{name}", program, suite)
            outcomes.update(cppunit.judge(status, text, suite, tests))
    return outcomes
