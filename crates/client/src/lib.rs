//! quenda-client
