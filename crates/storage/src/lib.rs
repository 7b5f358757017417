//! quenda-storage
