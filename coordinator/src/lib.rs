//! The coordinator: carries messages between participants and keeps nothing.
