//! quenda-node
