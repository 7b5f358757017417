"""Steps of an application's scenario as methods of a class, played on a stage (integration/lib/stage.py).

    class Orders(Scenario):
        @step("an order is taken")
        def take(self): ...

        @step("the shop is closed and opened", bounded=False)
        def close(self): ...

    Orders().play(stage)

Steps run in the order of their definition. Each rests on what those before it have brought about, so that behind one
that fails the rest is given up.
"""


def step(title, bounded=True):
    """Marks a method as a step; `bounded=False` leaves it out of the bounded form."""
    def mark(method):
        method.step_title, method.step_bounded = title, bounded
        return method
    return mark


class Scenario:
    def play(self, stage):
        """Runs the steps; what one returns is printed."""
        for method in vars(type(self)).values():
            if hasattr(method, "step_title") and (method.step_bounded or not stage.bounded):
                with stage.step(method.step_title, needed=True):
                    if found := method(self):
                        print(f"       {found}", flush=True)
