//! QUIC with mutual TLS 1.3 between Firn's processes, and who the peer is.
