"""Quenda and a genuine ZooKeeper side by side."""
