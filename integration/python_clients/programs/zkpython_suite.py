"""zkpython's own tests, unmodified, against a server: prints a step for each (integration/lib/asked.py).

Their base class has the port as a constant, which is set here.
"""

import glob
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import zkpython_module  # noqa: E402

zkpython_module.load()


class Told(unittest.TestResult):
    def tell(self, word, test, error=None):
        name = ".".join(test.id().split(".")[-2:])
        print(" ".join([word, name]) + (": " + str(error[1]).replace("\n", " ") if error else ""), flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell("ok", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell("FAILED", test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.tell("FAILED", test, error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell("skipped", test)


def main():
    tests, hosts = sys.argv[1], sys.argv[2]
    sys.path.insert(0, tests)
    os.environ["ZKPY_LOG_DIR"] = "."
    import zktestbase
    zktestbase.TestBase.SERVER_PORT = int(hosts.split(",")[0].rpartition(":")[2])
    names = [os.path.basename(path)[:-3] for path in sorted(glob.glob(os.path.join(tests, "*_test.py")))]
    result = Told()
    unittest.defaultTestLoader.loadTestsFromNames(names).run(result)
    sys.stdout.flush()
    os._exit(0 if result.wasSuccessful() and result.testsRun else 1)


main()
