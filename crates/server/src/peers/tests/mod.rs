//! Transports of several members in one process.

mod exchange;
mod founding;
mod harness;
mod images;
mod moving;
mod proxy;
mod refusals;
mod secure;
mod strangers;
