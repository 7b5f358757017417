//! quenda-consensus
