//! What the host relies on, for a single voter and for an ensemble.

mod common;
mod ensemble;
mod single_voter;
