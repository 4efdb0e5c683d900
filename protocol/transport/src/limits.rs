//! What one peer may occupy: streams, windows, time. It decides how much is too much, and never
//! who is asking.

use std::time::Duration;

use quinn::{IdleTimeout, TransportConfig, VarInt};

/// Bytes of a hello or a welcome.
pub const MAX_GREETING: usize = 64 << 10;

/// Connection attempts that wait for a decision, and handshakes under way, at once.
pub const MAX_INCOMING: usize = 64;

/// The longest step in which room for a frame is made while its bytes arrive.
pub(crate) const FRAME_STEP: usize = 64 << 10;

const MAX_STREAMS: u32 = 64;
const MIN_WINDOW: u32 = 4 << 10;
const MAX_WINDOW: u32 = 16 << 20;
const MAX_CONNECTION_WINDOW: u32 = 4 << 20;
const DEFAULT_STREAMS: u32 = 8;

/// After this long without anything from the peer, keep-alives included, a connection has ended.
pub const IDLE_MS: u32 = 15_000;

const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Bytes buffered for one attempt that nobody has decided on; there is no 0-RTT to buffer.
const INCOMING_BUFFER: u64 = 16 << 10;

/// Bounds of every connection of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    streams: u32,
    stream_window: u32,
    connections: usize,
    handshake: Duration,
    welcome: Duration,
}

impl Limits {
    /// For streams that carry no intents: a window of 64 KiB each.
    #[must_use]
    pub const fn small() -> Self {
        Self {
            streams: DEFAULT_STREAMS,
            stream_window: 64 << 10,
            connections: 256,
            handshake: Duration::from_secs(3),
            welcome: Duration::from_secs(3),
        }
    }

    /// For streams where intents travel: a window of 1 MiB each, so that an intent of the largest
    /// size does not wait for round trips.
    #[must_use]
    pub const fn for_intents() -> Self {
        Self {
            stream_window: 1 << 20,
            ..Self::small()
        }
    }

    /// At most this many bidirectional streams that the peer has open at once; held to 1..=64.
    #[must_use]
    pub fn with_streams(self, streams: u32) -> Self {
        Self {
            streams: streams.clamp(1, MAX_STREAMS),
            ..self
        }
    }

    /// At most this many bytes of one stream that wait to be read; held to 4 KiB..=16 MiB.
    #[must_use]
    pub fn with_stream_window(self, bytes: u32) -> Self {
        Self {
            stream_window: bytes.clamp(MIN_WINDOW, MAX_WINDOW),
            ..self
        }
    }

    /// At most this many connections of a listener at once, handshakes included.
    #[must_use]
    pub const fn with_connections(self, connections: usize) -> Self {
        Self {
            connections,
            ..self
        }
    }

    /// How long a handshake may take, the accepting side's wait for the hello included.
    #[must_use]
    pub const fn with_handshake_deadline(self, deadline: Duration) -> Self {
        Self {
            handshake: deadline,
            ..self
        }
    }

    /// How long the dialling side waits for the welcome once it has said hello.
    #[must_use]
    pub const fn with_welcome_deadline(self, deadline: Duration) -> Self {
        Self {
            welcome: deadline,
            ..self
        }
    }

    pub(crate) const fn connections(self) -> usize {
        self.connections
    }

    pub(crate) const fn handshake_deadline(self) -> Duration {
        self.handshake
    }

    pub(crate) const fn welcome_deadline(self) -> Duration {
        self.welcome
    }

    /// Bytes of all streams together that wait to be read, or to be acknowledged by the peer: room
    /// for all streams up to the cap, and always for one whole stream.
    fn connection_window(self) -> u32 {
        let all = self.stream_window.saturating_mul(self.streams);
        all.min(MAX_CONNECTION_WINDOW).max(self.stream_window)
    }

    pub(crate) fn transport(self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(self.streams))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(self.stream_window))
            .receive_window(VarInt::from_u32(self.connection_window()))
            .send_window(u64::from(self.connection_window()))
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))))
            .keep_alive_interval(Some(KEEP_ALIVE))
            .datagram_receive_buffer_size(None)
            .datagram_send_buffer_size(0);
        transport
    }

    /// Sets what only the accepting side decides.
    pub(crate) fn apply(self, server: &mut quinn::ServerConfig) {
        let mut tokens = quinn::ValidationTokenConfig::default();
        // A token from an earlier connection would be a way around Retry.
        tokens.sent(0).log(std::sync::Arc::new(quinn::NoneTokenLog));
        server
            .transport_config(std::sync::Arc::new(self.transport()))
            .migration(false)
            .validation_token_config(tokens)
            .max_incoming(MAX_INCOMING)
            .incoming_buffer_size(INCOMING_BUFFER)
            .incoming_buffer_size_total(INCOMING_BUFFER.saturating_mul(MAX_INCOMING as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, MAX_CONNECTION_WINDOW};

    #[test]
    fn the_connection_window_is_capped_and_holds_one_whole_stream() {
        for (limits, window) in [
            (Limits::small(), 512 << 10),
            (Limits::for_intents(), MAX_CONNECTION_WINDOW),
            (
                Limits::small().with_streams(u32::MAX),
                MAX_CONNECTION_WINDOW,
            ),
            (Limits::small().with_stream_window(u32::MAX), 16 << 20),
            (
                Limits::small().with_streams(0).with_stream_window(0),
                4 << 10,
            ),
        ] {
            assert_eq!(limits.connection_window(), window, "{limits:?}");
        }
    }
}
