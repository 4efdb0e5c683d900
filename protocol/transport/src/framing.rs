//! Messages on a stream: a length of four bytes, big endian, then that many bytes. It decides where
//! a message ends and whether it is too long, and never what it means.

use quinn::{RecvStream, SendStream, VarInt};

use crate::{TransportError, error::STOP_TOO_LARGE, limits::FRAME_STEP};

const HEADER: usize = 4;

/// The sending half of a stream. Dropping it ends the stream as [`Self::finish`] does.
#[derive(Debug)]
pub struct FrameSender {
    stream: SendStream,
}

impl FrameSender {
    pub(crate) const fn new(stream: SendStream) -> Self {
        Self { stream }
    }

    /// Sends one frame; returns when it is all in the send window, not when it has arrived.
    ///
    /// Not safe to cancel: the stream would go on with half a frame. Drop the sender then.
    ///
    /// # Errors
    ///
    /// A frame of 4 GiB or more, the peer stopping the stream, a lost connection.
    pub async fn send(&mut self, frame: &[u8]) -> Result<(), TransportError> {
        let length = u32::try_from(frame.len()).map_err(|_| TransportError::FrameTooLarge {
            length: frame.len(),
            limit: u32::MAX as usize,
        })?;
        self.stream.write_all(&length.to_be_bytes()).await?;
        self.stream.write_all(frame).await?;
        Ok(())
    }

    /// Ends the stream: the peer reads a clean end after the last frame.
    pub fn finish(mut self) {
        // Only a stream that has ended already cannot be ended, and then all is well.
        let _ = self.stream.finish();
    }

    /// Ends the stream as [`Self::finish`] does and waits until the peer's machine has all of it, so that
    /// the connection may be closed after it.
    ///
    /// # Errors
    ///
    /// The peer stopping the stream, a lost connection.
    pub async fn delivered(mut self) -> Result<(), TransportError> {
        let _ = self.stream.finish();
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(quinn::WriteError::Stopped(code).into()),
            Err(quinn::StoppedError::ConnectionLost(lost)) => Err(lost.into()),
            Err(quinn::StoppedError::ZeroRttRejected) => {
                Err(quinn::WriteError::ZeroRttRejected.into())
            }
        }
    }

    /// Gives the stream up: the peer's reader fails with the code.
    pub fn reset(mut self, code: u16) {
        let _ = self.stream.reset(VarInt::from_u32(u32::from(code)));
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct FrameReceiver {
    stream: RecvStream,
    header: [u8; HEADER],
    header_filled: usize,
    body: Option<Body>,
}

/// A frame that is arriving.
#[derive(Debug)]
struct Body {
    bytes: Vec<u8>,
    remaining: usize,
}

impl FrameReceiver {
    pub(crate) const fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            header: [0; HEADER],
            header_filled: 0,
            body: None,
        }
    }

    /// The next frame of at most `limit` bytes; none at the end of the stream.
    ///
    /// The announced length is compared with `limit` before anything is allocated, and room is made
    /// only for what arrives, at most 64 KiB ahead. Safe to cancel: the next call goes on where the
    /// cancelled one was.
    ///
    /// # Errors
    ///
    /// A longer frame (the stream is stopped then), a stream that ends inside a frame, a stream
    /// that the peer resets, a lost connection.
    pub async fn receive(&mut self, limit: usize) -> Result<Option<Vec<u8>>, TransportError> {
        loop {
            if let Some(body) = self.body.take_if(|body| body.remaining == 0) {
                return Ok(Some(body.bytes));
            }
            let wanted = match &self.body {
                Some(body) => body.remaining.min(FRAME_STEP),
                None => HEADER.saturating_sub(self.header_filled),
            };
            let Some(chunk) = self.stream.read_chunk(wanted, true).await? else {
                return match (self.header_filled, &self.body) {
                    (0, None) => Ok(None),
                    _ => Err(TransportError::FrameTruncated),
                };
            };
            match &mut self.body {
                Some(body) => body.take_in(&chunk.bytes),
                None => self.take_in_header(&chunk.bytes, limit)?,
            }
        }
    }

    /// Gives the stream up: the peer's sender fails with the code.
    pub fn stop(mut self, code: u16) {
        let _ = self.stream.stop(VarInt::from_u32(u32::from(code)));
    }

    fn take_in_header(&mut self, chunk: &[u8], limit: usize) -> Result<(), TransportError> {
        for byte in chunk {
            if let Some(place) = self.header.get_mut(self.header_filled) {
                *place = *byte;
                self.header_filled = self.header_filled.saturating_add(1);
            }
        }
        if self.header_filled < HEADER {
            return Ok(());
        }
        let length = usize::try_from(u32::from_be_bytes(self.header)).unwrap_or(usize::MAX);
        if length > limit {
            let _ = self.stream.stop(VarInt::from_u32(STOP_TOO_LARGE));
            return Err(TransportError::FrameTooLarge { length, limit });
        }
        self.header_filled = 0;
        self.body = Some(Body {
            bytes: Vec::new(),
            remaining: length,
        });
        Ok(())
    }
}

impl Body {
    fn take_in(&mut self, chunk: &[u8]) {
        if self.bytes.capacity().saturating_sub(self.bytes.len()) < chunk.len() {
            self.bytes.reserve_exact(self.remaining.min(FRAME_STEP));
        }
        self.bytes.extend_from_slice(chunk);
        self.remaining = self.remaining.saturating_sub(chunk.len());
    }
}
