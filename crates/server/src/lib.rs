//! quenda-server
