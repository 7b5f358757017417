//! The replicated state machine: znodes, access control lists, sessions, quotas.

pub mod command;
pub mod identity;

pub use identity::Identity;
