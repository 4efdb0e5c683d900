//! The operator's tool: firn.
