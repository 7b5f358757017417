//! Transports of several members in one process.
