//! One member that signs, and the one thing that it does wrong.

use firn_protocol::{
    codec::{List, Maybe},
    documents::{
        Checkpoint, Completed, InputSignature, Outcome, Receipt, RosterEntry, SignedCheckpoint,
    },
    envelope::Envelope,
    ids::*,
    keys::IdentitySecret,
    merkle::{MerkleRoot, TreeSize},
    messages::*,
    reject::Reject,
    session::SessionHeader,
    threshold::{NoncePair, SigningList, SigningShare},
};
use rand_chacha::ChaCha20Rng;

use super::id;
use crate::session::request::RequestTerms;

/// The one thing that a member does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Habit {
    #[default]
    Honest,
    Silent,
    SilentAfterPackage,
    Refuses(Reject),
    RefusesOnce(Reject),
    RefusesAnotherSession,
    /// Signs with a key that is not in the roster.
    Stranger,
    SpeaksForAnother,
    WrongSession,
    WrongInputCount,
    TooManyInputs,
    NotAPoint,
    BadShare,
    WrongPackage,
    TooFewShares,
    SharesFirst,
    /// Has been through all this before.
    HasReceipt,
    ForgedReceipt,
    KeepsReceiptBack,
    /// Another attempt of the same request has been faster.
    CompletedElsewhere,
}

fn checkpoint(secret: &IdentitySecret) -> SignedCheckpoint {
    let checkpoint = Checkpoint {
        size: TreeSize::new(1),
        root: MerkleRoot::from_bytes([1; 32]),
        time: UnixMillis::new(1),
    };
    Envelope::sign(&checkpoint, secret).unwrap()
}

pub(crate) fn standing(secret: &IdentitySecret) -> Standing {
    Standing {
        checkpoint: checkpoint(secret),
        witnessed: List::empty(),
        time: UnixMillis::new(1),
    }
}

pub(crate) struct FakeMember {
    pub(crate) entry: RosterEntry,
    pub(crate) secret: IdentitySecret,
    pub(crate) share: SigningShare,
    pub(crate) habit: Habit,
    pub(super) nonces: Vec<NoncePair>,
    pub(super) header: Option<SessionHeader>,
    pub(super) session: SessionId,
}

impl FakeMember {
    pub(crate) fn new(member: Identifier, share: SigningShare, rng: &mut ChaCha20Rng) -> Self {
        let secret = IdentitySecret::generate(rng);
        let entry = RosterEntry {
            name: format!("m-{member}").parse().unwrap(),
            identifier: member,
            identity: secret.identity(),
            tls_name: format!("spiffe://td/participant/m-{member}")
                .parse()
                .unwrap(),
        };
        Self {
            entry,
            secret,
            share,
            habit: Habit::Honest,
            nonces: Vec::new(),
            header: None,
            session: SessionId::from_bytes([0; 32]),
        }
    }

    pub(crate) fn answer(
        &mut self,
        message: ToMember,
        terms: &RequestTerms,
        stored: &[InputSignature],
        rng: &mut ChaCha20Rng,
    ) -> Option<FromMember> {
        let messages: Vec<_> = terms.items.iter().map(|item| item.message).collect();
        match message {
            ToMember::SignOpen(open) => self.on_open(&open.header, terms, stored, rng),
            ToMember::Package(package) => {
                (self.habit != Habit::SilentAfterPackage).then(|| self.shares(&package, &messages))
            }
            ToMember::Final(_) if self.habit == Habit::CompletedElsewhere => {
                Some(self.receipt(SessionId::from_bytes([9; 32]), stored, terms))
            }
            ToMember::Final(last) => (self.habit != Habit::KeepsReceiptBack)
                .then(|| self.receipt(last.session, &last.signatures, terms)),
            _ => panic!("not a message of a signing session"),
        }
    }

    fn on_open(
        &mut self,
        header: &Envelope<SessionHeader>,
        terms: &RequestTerms,
        stored: &[InputSignature],
        rng: &mut ChaCha20Rng,
    ) -> Option<FromMember> {
        self.open(header);
        let earlier = SessionId::from_bytes([9; 32]);
        match self.habit {
            Habit::Silent => None,
            Habit::Refuses(code) => Some(self.refusal(code, self.session)),
            Habit::RefusesOnce(code) => {
                self.habit = Habit::Honest;
                Some(self.refusal(code, self.session))
            }
            Habit::RefusesAnotherSession => Some(self.refusal(Reject::Busy, earlier)),
            Habit::HasReceipt => Some(self.receipt(earlier, stored, terms)),
            Habit::ForgedReceipt => {
                let mut forged = stored.to_vec();
                forged[0].signature = Signature::from_bytes([1; 64]);
                Some(self.receipt(earlier, &forged, terms))
            }
            Habit::SharesFirst => {
                let digest = PackageDigest::from_bytes([0; 32]);
                Some(FromMember::Shares(self.share_list(digest, Vec::new())))
            }
            _ => Some(self.commitments(terms.items.len(), rng)),
        }
    }

    pub(crate) fn open(&mut self, header: &Envelope<SessionHeader>) {
        let claimed = header.claimed_signer().unwrap();
        let header = header.clone().verify(&claimed).unwrap();
        self.session = header.session_id();
        self.header = Some((*header).clone());
    }

    pub(crate) fn commitments(&mut self, inputs: usize, rng: &mut ChaCha20Rng) -> FromMember {
        let made = (0..inputs).map(|_| NoncePair::commit(&self.share, rng).unwrap());
        let (nonces, mut inputs): (Vec<_>, Vec<_>) = made.unzip();
        self.nonces = nonces;
        let (mut session, mut member) = (self.session, self.entry.identifier);
        match self.habit {
            Habit::WrongInputCount => drop(inputs.pop()),
            Habit::TooManyInputs => inputs.push(inputs[0]),
            Habit::NotAPoint => inputs[0].hiding = Point::from_bytes([5; 33]),
            Habit::WrongSession => session = SessionId::from_bytes([1; 32]),
            Habit::SpeaksForAnother => member = id(99),
            _ => {}
        }
        let commitments = Commitments {
            session,
            member,
            inputs: List::new(inputs).unwrap(),
            standing: standing(&self.secret),
            news: News {
                from: TreeSize::new(0),
                to: TreeSize::new(0),
                entries: List::empty(),
            },
        };
        let stranger = IdentitySecret::generate(rng);
        let secret = if self.habit == Habit::Stranger {
            &stranger
        } else {
            &self.secret
        };
        FromMember::Commitments(Envelope::sign(&commitments, secret).unwrap())
    }

    pub(crate) fn shares(&mut self, package: &Package, messages: &[[u8; 32]]) -> FromMember {
        let members = self.header.as_ref().unwrap().members.to_vec();
        let commitments: Vec<_> = package
            .commitments
            .iter()
            .map(|envelope| {
                envelope
                    .clone()
                    .verify(&envelope.claimed_signer().unwrap())
                    .unwrap()
            })
            .collect();
        let mut shares = Vec::new();
        for (place, pair) in std::mem::take(&mut self.nonces).into_iter().enumerate() {
            let list: Vec<_> = commitments
                .iter()
                .map(|word| (word.member, word.inputs[place]))
                .collect();
            let list = SigningList::new(&members, &list, &messages[place]).unwrap();
            shares.push(pair.sign(&list, &self.share, None).unwrap());
        }
        let signer = package.body.claimed_signer().unwrap();
        let body = package.body.clone().verify(&signer).unwrap();
        let mut digest = PackageDigest::from_bytes(body.digest());
        match self.habit {
            Habit::BadShare => *shares.last_mut().unwrap() = SignatureShare::from_bytes([7; 32]),
            Habit::TooFewShares => drop(shares.pop()),
            Habit::WrongPackage => digest = PackageDigest::from_bytes([1; 32]),
            _ => {}
        }
        FromMember::Shares(self.share_list(digest, shares))
    }

    fn share_list(
        &self,
        package: PackageDigest,
        shares: Vec<SignatureShare>,
    ) -> Envelope<ShareList> {
        let list = ShareList {
            session: self.session,
            member: self.entry.identifier,
            package,
            shares: List::new(shares).unwrap(),
            checkpoint: checkpoint(&self.secret),
        };
        Envelope::sign(&list, &self.secret).unwrap()
    }

    pub(crate) fn refusal(&self, code: Reject, session: SessionId) -> FromMember {
        let refusal = Refusal {
            about: message_digest(b"something"),
            session: Maybe(Some(session)),
            request_id: Maybe(None),
            code,
            culprit: Maybe(None),
            retry_after_ms: Maybe(None),
            time: UnixMillis::new(1),
        };
        FromMember::Refusal(Envelope::sign(&refusal, &self.secret).unwrap())
    }

    fn receipt(
        &self,
        session: SessionId,
        signatures: &[InputSignature],
        terms: &RequestTerms,
    ) -> FromMember {
        let signatures = List::new(signatures.to_vec()).unwrap();
        let receipt = Receipt {
            key_id: terms.key_id,
            request_id: terms.subject.request_id,
            intent: terms.subject.intent,
            policy: terms.subject.policy,
            epoch: terms.epoch,
            session,
            outcome: Outcome::Completed(Completed { signatures }),
            position: 1,
            checkpoint: checkpoint(&self.secret),
            time: UnixMillis::new(1),
        };
        FromMember::Receipt(Envelope::sign(&receipt, &self.secret).unwrap())
    }
}
