"""Containers as an operator handles them: the docker command, and waiting for what it reports."""

import json
import pathlib
import subprocess
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HEALTHY_SECONDS = 60
# The interval of the image is for real use; here nobody wants to wait for it.
FAST_HEALTH = ("--health-interval", "500ms", "--health-start-period", "30s")


class DockerError(Exception):
    """A docker command failed, or a container did not become what it had to."""


def docker(*arguments, check=True, binary="docker", env=None):
    """Standard output of a docker command, without the last line end."""
    done = subprocess.run([binary, *arguments], check=False, capture_output=True, text=True, timeout=120, env=env)
    if check and done.returncode:
        raise DockerError(f"{binary} {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.rstrip("\n")


def wait_until(what, condition, seconds=HEALTHY_SECONDS):
    """Polls until the condition gives something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise DockerError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Container:
    """A container that exists already, by name or id."""

    def __init__(self, name):
        self.name = name

    def state(self):
        return json.loads(docker("inspect", "--format", "{{json .State}}", self.name))

    def logs(self):
        done = subprocess.run(["docker", "logs", self.name], check=False, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    def execute(self, *command):
        return docker("exec", self.name, *command)

    def read(self, path):
        return self.execute("cat", path)

    def wait_healthy(self):
        def healthy():
            state = self.state()
            if state["Status"] != "running" or state["Health"]["Status"] == "unhealthy":
                raise DockerError(f"{self.name} is {state['Status']}: {self.logs()[-3000:]}")
            return state["Health"]["Status"] == "healthy"

        try:
            wait_until(f"{self.name} is healthy", healthy)
        except DockerError as error:
            raise DockerError(f"{error}\n{self.logs()[-3000:]}") from None
        return self

    def wait_exit(self):
        """Exit status of a container that ends by itself."""
        wait_until(f"{self.name} has ended", lambda: self.state()["Status"] == "exited")
        return self.state()["ExitCode"]

    def stop(self):
        """Stops it as `docker stop` does. Seconds that a clean stop took; an error if it was none."""
        start = time.monotonic()
        docker("stop", "--time", "30", self.name)
        code = self.state()["ExitCode"]
        if code != 0:
            raise DockerError(f"{self.name} ended with {code}: {self.logs()[-3000:]}")
        return time.monotonic() - start

    def start(self):
        docker("start", self.name)
        return self

    def mode(self):
        """What the member says it is: leader, follower, standalone, …; None while it does not serve."""
        report = docker("exec", self.name, "zkServer.sh", "status", check=False)
        return next((line.removeprefix("Mode: ") for line in report.splitlines() if line.startswith("Mode: ")), None)
