//! The socket's file and its peers. It decides what may be replaced and which user may speak; it never
//! widens a permission.

use std::{
    fs::{self, File, Metadata},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, fchmod},
    process::geteuid,
};
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use super::ControlError;

/// Bytes of a path that an address of the system holds.
const MAX_PATH: usize = 107;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 8;

/// A listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that another's socket of the same name is left alone.
    place: (u64, u64),
}

/// A path as the system takes it: one that is too long goes through its open folder.
struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Socket {
    pub(super) fn listen(path: &Path) -> Result<Self, ControlError> {
        let address = Address::of(path).map_err(ControlError::failed("opening", path))?;
        remove_stale(path, &address)?;
        let failed = |doing| ControlError::failed(doing, path);
        let socket = UnixSocket::new_stream().map_err(failed("making"))?;
        // Before the file exists: it never has another mode, and no other thread's umask changes.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed("setting the mode of")(error.into()))?;
        socket.bind(&address.path).map_err(failed("binding"))?;
        let found = fs::symlink_metadata(path).map_err(failed("looking at"))?;
        let socket = Self {
            place: place(&found),
            path: path.to_owned(),
            listener: socket.listen(BACKLOG).map_err(failed("listening at"))?,
        };
        if found.mode() & 0o077 != 0 || found.uid() != geteuid().as_raw() {
            return Err(failed("protecting")(io::ErrorKind::PermissionDenied.into()));
        }
        Ok(socket)
    }

    pub(super) async fn accept(&self) -> Result<UnixStream, ControlError> {
        let accepted = self.listener.accept().await;
        let (stream, _) = accepted.map_err(ControlError::failed("accepting at", &self.path))?;
        Ok(stream)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_own =
            fs::symlink_metadata(&self.path).is_ok_and(|found| place(&found) == self.place);
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!("the control socket's file stays: {error}");
        }
    }
}

impl Address {
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= MAX_PATH {
            return Ok(Self {
                path: path.to_owned(),
                _folder: None,
            });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(rustix::fs::open(folder, how, Mode::empty())?);
        let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self {
            path: through,
            _folder: Some(folder),
        })
    }
}

/// Refuses a peer of another user than this one and root. The file's mode says the same; this holds also
/// where somebody has changed it.
pub(super) fn check_peer(stream: &UnixStream) -> Result<(), ControlError> {
    let peer = stream.peer_cred().map_err(ControlError::PeerUnknown)?;
    judge_peer(peer.uid(), geteuid().as_raw())
}

pub(super) const fn judge_peer(peer: u32, own: u32) -> Result<(), ControlError> {
    if peer == own || peer == 0 {
        Ok(())
    } else {
        Err(ControlError::PeerRefused { peer, own })
    }
}

/// Removes a socket that a process which is gone has left.
fn remove_stale(path: &Path, address: &Address) -> Result<(), ControlError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ControlError::failed("looking at", path)(error)),
    };
    if !found.file_type().is_socket() {
        return Err(ControlError::Strange {
            path: path.to_owned(),
        });
    }
    let connected = std::os::unix::net::UnixStream::connect(&address.path);
    match connected {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(ControlError::failed("removing the old", path))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(ControlError::InUse {
            path: path.to_owned(),
        }),
        Err(error) => Err(ControlError::failed("connecting to the old", path)(error)),
    }
}

fn place(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
