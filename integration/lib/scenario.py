"""A scenario in steps, one behind the other, each passed or failed.

    class Orders(Scenario):
        @step("an order is taken")
        def take(self): ...

        @step("the shop is closed and opened", bounded=False)
        def close(self): ...

    passed, failed = Orders().play(bounded=True)

Steps run in the order of their definition. What follows a failed step rests on what that did not bring about: it is
not tried, and counts as failed.
"""

import sys
import time
import traceback


def step(title, bounded=True):
    """Marks a method as a step; `bounded=False` leaves it out of the bounded form."""
    def mark(method):
        method.step_title, method.step_bounded = title, bounded
        return method
    return mark


class Scenario:
    def describe(self):
        """What helps to find the cause of a failure: the ends of logs, for instance."""
        return ""

    def play(self, bounded=False):
        """Runs the steps; returns how many passed and failed."""
        steps = [method for method in vars(type(self)).values() if hasattr(method, "step_title")]
        if bounded:
            steps = [method for method in steps if method.step_bounded]
        for passed, method in enumerate(steps):
            began = time.monotonic()
            try:
                found = method(self)
            except Exception:
                print(f"FAILED {method.step_title}", flush=True)
                traceback.print_exc(file=sys.stdout)
                print(self.describe(), flush=True)
                for missed in steps[passed + 1 :]:
                    print(f"FAILED {missed.step_title}: not reached")
                return passed, len(steps) - passed
            seen = f": {found}" if found else ""
            print(f"ok {method.step_title} ({time.monotonic() - began:.1f} s){seen}", flush=True)
        return len(steps), 0
