//! Frames on a byte stream: four bytes of length, most significant first, then as many bytes. It decides
//! whether a frame may be that long before it makes room for it, and never what it says.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// It announces more bytes than it may have.
    #[error("the frame is over its limit")]
    TooLarge,
    /// The stream failed or ended inside a frame.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The next frame; none at the end of the stream.
pub(super) async fn read<R: AsyncRead + Unpin>(
    reader: &mut R,
    limit: usize,
) -> Result<Option<Vec<u8>>, FrameError> {
    let mut length = [0; 4];
    let (first, rest) = length.split_at_mut(1);
    if reader.read(first).await? == 0 {
        return Ok(None);
    }
    reader.read_exact(rest).await?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > limit {
        return Err(FrameError::TooLarge);
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).await?;
    Ok(Some(bytes))
}

/// Writes one frame.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    writer: &mut W,
    bytes: &[u8],
) -> Result<(), io::Error> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut frame = Vec::with_capacity(bytes.len().saturating_add(4));
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(bytes);
    writer.write_all(&frame).await?;
    writer.flush().await
}
