//! Whole clusters in one thread, on virtual time, from a seed.
//!
//! Machines run the same [`quenda_node::Member`], [`quenda_node::Applier`] and
//! [`quenda_frontend::Connection`]s as the server; this crate takes the place of its threads, sockets,
//! disks and clocks. Clients speak the real protocol. While faults of every kind happen, observers hold
//! what members apply and what clients are told against the promises of the design; at last everything
//! heals, and everything has to be well again within a bounded time.
//!
//! [`sim::run`] runs one seed. The same seed gives the same run: everything that is left to chance comes
//! from it, and time does not pass but is counted.

mod checks;
mod client;
mod clock;
mod delivery;
mod disk;
mod event;
mod faults;
mod host;
pub mod linear;
mod network;
pub mod plan;
pub mod rng;
mod schedule;
mod sessions;
pub mod sim;
pub mod trace;
mod wire;

pub use checks::Counters;
