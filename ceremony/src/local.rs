//! The line to the daemon of this machine, over its control socket. It decides whether what listens
//! there may be believed, and never what the daemon answers.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use firn_protocol::{
    codec,
    envelope::Endorsed,
    ids::{Nonce, PlanDigest},
    messages::{
        AcceptPlan, FromDaemon, LocalStatus, MAX_LOCAL_MESSAGE, MemberStatus, PlanAccepted,
        ToDaemon,
    },
};
use rustix::{
    fs::{Mode, OFlags},
    process::geteuid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use crate::Error;

/// Bytes of a path that an address of the system holds.
const MAX_PATH: usize = 107;
/// How long the daemon may take for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to a daemon of this machine.
#[derive(Debug)]
pub struct LocalLine {
    path: PathBuf,
    stream: UnixStream,
}

impl LocalLine {
    /// Connects to the daemon whose control socket is at `path`.
    ///
    /// # Errors
    /// [`Error::File`] where nothing listens there; [`Error::Unfit`] where another user does.
    pub async fn connect(path: &Path) -> Result<Self, Error> {
        let failed = || Error::file("connecting to the daemon at", path);
        let (address, _folder) = address(path).map_err(failed())?;
        let stream = UnixStream::connect(address).await.map_err(failed())?;
        let daemon = stream.peer_cred().map_err(failed())?.uid();
        let own = geteuid().as_raw();
        // Root speaks with everybody's daemon; others only with their own, or root's.
        if own != 0 && daemon != own && daemon != 0 {
            return Err(Error::Unfit {
                path: path.to_owned(),
                what: format!("user {daemon} listens there, not the daemon's"),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            stream,
        })
    }

    /// Accepts a plan on this machine, whose digest has been compared.
    ///
    /// # Errors
    /// [`Error::Daemon`] with the daemon's own code.
    pub async fn accept(
        &mut self,
        plan: &Endorsed,
        digest: PlanDigest,
    ) -> Result<PlanAccepted, Error> {
        let asked = AcceptPlan {
            plan: plan.clone(),
            fingerprint: digest,
        };
        match self.ask(ToDaemon::AcceptPlan(asked)).await? {
            FromDaemon::Accepted(accepted) if accepted.plan == digest => Ok(accepted),
            FromDaemon::Failed(failure) => Err(failed(failure)),
            FromDaemon::Accepted(_) | FromDaemon::Status(_) => Err(self.unfit()),
        }
    }

    /// How the daemon is, by its own word: signed with the key that it says, for this nonce.
    ///
    /// # Errors
    /// [`Error::Daemon`] with the daemon's own code.
    pub async fn status(&mut self, nonce: Nonce) -> Result<(MemberStatus, LocalStatus), Error> {
        match self.ask(ToDaemon::Status(nonce)).await? {
            FromDaemon::Status(status) => {
                let signer = status.status.claimed_signer()?;
                let verified = status.status.clone().verify(&signer)?;
                if verified.nonce == nonce {
                    Ok(((*verified).clone(), status))
                } else {
                    Err(self.unfit())
                }
            }
            FromDaemon::Failed(failure) => Err(failed(failure)),
            FromDaemon::Accepted(_) => Err(self.unfit()),
        }
    }

    async fn ask(&mut self, question: ToDaemon) -> Result<FromDaemon, Error> {
        let question = codec::encode(&question)?;
        let answered = timeout(PATIENCE, exchange(&mut self.stream, &question)).await;
        let answer = answered
            .map_err(|_| Error::Deadline {
                waiting_for: "the daemon's answer".to_owned(),
                seconds: PATIENCE.as_secs(),
            })?
            .map_err(Error::file("asking the daemon at", &self.path))?;
        codec::decode(&answer, MAX_LOCAL_MESSAGE).map_err(|_| self.unfit())
    }

    fn unfit(&self) -> Error {
        Error::Unfit {
            path: self.path.clone(),
            what: "what came back is no answer of a daemon".to_owned(),
        }
    }
}

fn failed(failure: firn_protocol::messages::LocalFailure) -> Error {
    Error::Daemon {
        code: failure.code.as_str().to_owned(),
        message: failure.message.as_str().to_owned(),
        advice: failure.advice.as_str().to_owned(),
    }
}

/// One frame there and one back: four bytes of length, most significant first, then as many bytes.
async fn exchange(stream: &mut UnixStream, question: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let frame = [&length.to_be_bytes(), question].concat();
    stream.write_all(&frame).await?;
    let length = usize::try_from(stream.read_u32().await?).unwrap_or(usize::MAX);
    if length > MAX_LOCAL_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// The path as the system takes it: one that is too long goes through its folder, which is open for as
/// long as the second value lives.
fn address(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    if path.as_os_str().len() <= MAX_PATH {
        return Ok((path.to_owned(), None));
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(folder, how, Mode::empty())?);
    let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((through, Some(folder)))
}

#[cfg(test)]
mod tests {
    use firn_protocol::{codec::Text, messages::LocalFailure};
    use tokio::net::UnixListener;

    use super::*;

    /// Whatever is asked there is answered with these bytes.
    fn answering(path: &Path, answer: Vec<u8>) {
        let listener = UnixListener::bind(path).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let length = stream.read_u32().await.unwrap();
            let mut question = vec![0; usize::try_from(length).unwrap()];
            stream.read_exact(&mut question).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        });
    }

    fn framed(answer: &FromDaemon) -> Vec<u8> {
        let bytes = codec::encode(answer).unwrap();
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [&length, bytes.as_slice()].concat()
    }

    #[tokio::test]
    async fn what_is_no_answer_of_a_daemon_is_not_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let no = FromDaemon::Failed(LocalFailure {
            code: Text::new("plan_fingerprint").unwrap(),
            message: Text::new("another").unwrap(),
            advice: Text::new("Compare again.").unwrap(),
        });
        let accepted = FromDaemon::Accepted(PlanAccepted {
            plan: PlanDigest::from_bytes([1; 32]),
            member: "a".parse().unwrap(),
        });
        for (number, (answer, code)) in [
            (framed(&no), "plan_fingerprint"),
            (framed(&accepted), "unfit"),
            (vec![0, 0, 0, 1, 0xff], "unfit"),
            (vec![0xff; 4], "file"),
            (vec![0, 0], "file"),
            (Vec::new(), "file"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(number.to_string());
            answering(&path, answer);
            let mut line = LocalLine::connect(&path).await.unwrap();
            let error = line.status(Nonce::from_bytes([1; 32])).await.unwrap_err();
            assert_eq!(error.code(), code, "{number}");
        }
        let nobody = LocalLine::connect(&folder.path().join("nobody")).await;
        assert_eq!(nobody.unwrap_err().code(), "file");
    }
}
