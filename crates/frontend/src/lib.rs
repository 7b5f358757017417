//! quenda-frontend
