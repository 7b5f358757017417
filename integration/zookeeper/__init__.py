"""A genuine Apache ZooKeeper to compare Quenda with."""
