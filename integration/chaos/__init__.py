"""Real processes under faults, real clients at work, and checkers for what the clients have seen."""
