"""Members restarted and changed one by one under load."""
