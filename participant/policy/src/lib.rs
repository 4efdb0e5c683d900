//! The policy engine: rules over a parsed transaction. Pure.
