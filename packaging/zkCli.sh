#!/bin/sh
# ZooKeeper's shell under its own name.
exec quenda shell --zkcli "$@"
