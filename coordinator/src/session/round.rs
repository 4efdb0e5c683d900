//! The two rounds of FROST (RFC 9591, section 5) as the coordinator sees them: commitments, package,
//! shares, signature. It decides that every list is exactly what the session needs and names all who
//! sent something else; it never learns anything secret.

use std::collections::BTreeMap;

use firn_protocol::{
    codec::List,
    documents::InputSignature,
    envelope::{Envelope, Verified},
    ids::{Identifier, PackageDigest, SessionId},
    messages::{
        Commitment, Commitments, Package, PackageBody, ShareList, SigningRecord, input_digest,
    },
    reject::Reject,
    session::SessionHeader,
    signable,
    threshold::{AddressKey, PublicShares, SigningList, aggregate},
};

use super::{Fault, SessionMember, word_of};
use crate::voice::Voice;

/// One message to sign, and the key that its signature must verify against.
#[derive(Debug, Clone)]
pub struct Item {
    /// Index of the input in the transaction; 0 for a proof of life.
    pub input: u32,
    /// The 32-byte signature hash.
    pub message: [u8; 32],
    /// The group, tweaked to the input's address.
    pub key: AddressKey,
}

impl Item {
    /// What `signable` says is to be signed, with the key that it must verify against.
    ///
    /// # Errors
    /// When the derivation does not lead to the address.
    pub fn of(signable: &signable::Item, public: &PublicShares) -> Result<Self, Reject> {
        Ok(Self {
            input: signable.input,
            message: signable.message,
            key: signable.key(public)?,
        })
    }
}

/// What a round is about.
#[derive(Debug, Clone)]
pub struct RoundTerms {
    /// The session.
    pub header: Verified<SessionHeader>,
    /// Its members, ascending.
    pub members: Vec<SessionMember>,
    /// What is signed, ascending by input.
    pub items: Vec<Item>,
}

impl RoundTerms {
    /// The session's id.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.header.session_id()
    }
}

/// Why a round cannot go on: who is at fault, or nobody where the fault is here.
#[derive(Debug, Clone)]
pub struct RoundFailed {
    /// All members at fault.
    pub faults: Vec<Fault>,
    /// The code where nobody is.
    pub code: Reject,
}

impl From<Fault> for RoundFailed {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.failing.code(),
            faults: vec![fault],
        }
    }
}

impl From<Vec<Fault>> for RoundFailed {
    fn from(faults: Vec<Fault>) -> Self {
        let code = faults
            .first()
            .map_or(Reject::Internal, |fault| fault.failing.code());
        Self { faults, code }
    }
}

impl From<Reject> for RoundFailed {
    fn from(code: Reject) -> Self {
        Self {
            faults: Vec::new(),
            code,
        }
    }
}

/// Waits for everybody's commitments.
#[derive(Debug)]
pub struct AwaitCommitments {
    terms: RoundTerms,
    commitments: BTreeMap<Identifier, Verified<Commitments>>,
}

/// What comes after commitments of one member.
#[derive(Debug)]
pub enum AfterCommitments {
    /// Others are missing.
    More(Box<AwaitCommitments>),
    /// All are there: the package goes to every member.
    Package(Box<AwaitShares>, Package),
}

impl AwaitCommitments {
    /// A round that has been opened.
    #[must_use]
    pub const fn new(terms: RoundTerms) -> Self {
        Self {
            terms,
            commitments: BTreeMap::new(),
        }
    }

    /// What the round is about.
    #[must_use]
    pub const fn terms(&self) -> &RoundTerms {
        &self.terms
    }

    /// Members whose commitments are there.
    pub fn answered(&self) -> impl Iterator<Item = Identifier> {
        self.commitments.keys().copied()
    }

    /// Takes one member's commitments.
    ///
    /// # Errors
    /// Whoever sent what does not belong here.
    pub fn take(
        mut self,
        from: Identifier,
        envelope: Envelope<Commitments>,
        voice: &Voice,
    ) -> Result<AfterCommitments, RoundFailed> {
        let commitments = word_of(&self.terms.members, from, envelope)?;
        let code = if commitments.session != self.terms.session() {
            Some(Reject::SessionMismatch)
        } else if commitments.member != from {
            Some(Reject::PackageMembers)
        } else if commitments.inputs.len() != self.terms.items.len() {
            Some(Reject::InputCount)
        } else if self.commitments.contains_key(&from) {
            Some(Reject::UnexpectedMessage)
        } else {
            None
        };
        if let Some(code) = code {
            return Err(Fault::misbehaved(from, code).into());
        }
        self.commitments.insert(from, commitments);
        if self.commitments.len() < self.terms.members.len() {
            return Ok(AfterCommitments::More(Box::new(self)));
        }
        self.package(voice)
    }

    fn package(self, voice: &Voice) -> Result<AfterCommitments, RoundFailed> {
        let commitments: Vec<_> = self.commitments.into_values().collect();
        let mut digests = Vec::new();
        let mut lists = Vec::new();
        for (place, item) in self.terms.items.iter().enumerate() {
            let list = commitments
                .iter()
                .map(|member| {
                    member
                        .inputs
                        .get(place)
                        .map(|commitment| (member.member, *commitment))
                        .ok_or(Fault::misbehaved(member.member, Reject::InputCount))
                })
                .collect::<Result<Vec<_>, Fault>>()?;
            digests.push(input_digest(&list).map_err(Reject::from)?);
            lists.push(signing_list(&list, &item.message)?);
        }
        let session = self.terms.session();
        let inputs = List::new(digests).ok_or(Reject::TooLarge)?;
        let body = voice.sign(&PackageBody { session, inputs })?;
        let envelopes = commitments
            .iter()
            .map(|member| member.envelope().clone())
            .collect();
        let package = Package {
            body: body.envelope().clone(),
            commitments: List::new(envelopes).ok_or(Reject::SessionMembers)?,
        };
        let next = AwaitShares {
            terms: self.terms,
            commitments,
            package: body,
            lists,
            shares: BTreeMap::new(),
        };
        Ok(AfterCommitments::Package(Box::new(next), package))
    }
}

/// The list for one input. frost does not say whose point is none, so each is tried alone then.
fn signing_list(
    list: &[(Identifier, Commitment)],
    message: &[u8; 32],
) -> Result<SigningList, RoundFailed> {
    let members: Vec<_> = list.iter().map(|(member, _)| *member).collect();
    SigningList::new(&members, list, message).map_err(|_| {
        let faults: Vec<_> = list
            .iter()
            .filter(|entry| {
                SigningList::new(&[entry.0], std::slice::from_ref(entry), message).is_err()
            })
            .map(|(member, _)| Fault::misbehaved(*member, Reject::Schema))
            .collect();
        RoundFailed::from(faults)
    })
}

/// Waits for everybody's shares.
#[derive(Debug)]
pub struct AwaitShares {
    terms: RoundTerms,
    commitments: Vec<Verified<Commitments>>,
    package: Verified<PackageBody>,
    lists: Vec<SigningList>,
    shares: BTreeMap<Identifier, Verified<ShareList>>,
}

/// What comes after shares of one member.
#[derive(Debug)]
pub enum AfterShares {
    /// Others are missing.
    More(Box<AwaitShares>),
    /// All are there and good.
    Signed(Box<SignedRound>),
}

impl AwaitShares {
    /// What the round is about.
    #[must_use]
    pub const fn terms(&self) -> &RoundTerms {
        &self.terms
    }

    /// Members whose shares are there.
    pub fn answered(&self) -> impl Iterator<Item = Identifier> {
        self.shares.keys().copied()
    }

    /// Takes one member's shares; the last one makes the signatures.
    ///
    /// # Errors
    /// Whoever sent what does not belong here; all whose shares are bad.
    pub fn take(
        mut self,
        from: Identifier,
        envelope: Envelope<ShareList>,
    ) -> Result<AfterShares, RoundFailed> {
        let shares = word_of(&self.terms.members, from, envelope)?;
        let code = if shares.session != self.terms.session() {
            Some(Reject::SessionMismatch)
        } else if shares.member != from {
            Some(Reject::SessionMembers)
        } else if shares.package != PackageDigest::from_bytes(self.package.digest()) {
            Some(Reject::PackageDigest)
        } else if shares.shares.len() != self.terms.items.len() {
            Some(Reject::InputCount)
        } else if self.shares.contains_key(&from) {
            Some(Reject::UnexpectedMessage)
        } else {
            None
        };
        if let Some(code) = code {
            return Err(Fault::misbehaved(from, code).into());
        }
        self.shares.insert(from, shares);
        if self.shares.len() < self.terms.members.len() {
            return Ok(AfterShares::More(Box::new(self)));
        }
        self.aggregate()
    }

    /// Every input is tried before anybody is named, so that all cheaters are.
    fn aggregate(self) -> Result<AfterShares, RoundFailed> {
        let mut signatures = Vec::new();
        let mut culprits = Vec::new();
        let mut unexplained = false;
        for (place, (item, list)) in self.terms.items.iter().zip(&self.lists).enumerate() {
            let shares: Vec<_> = self
                .shares
                .iter()
                .filter_map(|(member, list)| Some((*member, *list.shares.get(place)?)))
                .collect();
            match aggregate(list, &shares, &item.key) {
                Ok(signature) => signatures.push(InputSignature {
                    input: item.input,
                    signature,
                }),
                Err(named) => {
                    unexplained |= named.0.is_empty();
                    culprits.extend(named.0);
                }
            }
        }
        culprits.sort_unstable();
        culprits.dedup();
        if !culprits.is_empty() {
            let named = culprits
                .into_iter()
                .map(|m| Fault::misbehaved(m, Reject::FinalSignature));
            return Err(named.collect::<Vec<_>>().into());
        }
        if unexplained {
            return Err(Reject::FinalSignature.into());
        }
        Ok(AfterShares::Signed(Box::new(SignedRound {
            terms: self.terms,
            commitments: self.commitments,
            package: self.package,
            shares: self.shares.into_values().collect(),
            signatures,
        })))
    }
}

/// A round that made its signatures, with everything they were made of.
#[derive(Debug)]
pub struct SignedRound {
    /// What it was about.
    pub terms: RoundTerms,
    commitments: Vec<Verified<Commitments>>,
    package: Verified<PackageBody>,
    shares: Vec<Verified<ShareList>>,
    /// One signature for each item, each verified.
    pub signatures: Vec<InputSignature>,
}

impl SignedRound {
    /// The evidence.
    ///
    /// # Errors
    /// Never: a session fits the lists.
    pub fn record(&self) -> Result<SigningRecord, Reject> {
        let commitments = self
            .commitments
            .iter()
            .map(|c| c.envelope().clone())
            .collect();
        let shares = self.shares.iter().map(|s| s.envelope().clone()).collect();
        Ok(SigningRecord {
            header: self.terms.header.envelope().clone(),
            commitments: List::new(commitments).ok_or(Reject::TooLarge)?,
            package: self.package.envelope().clone(),
            shares: List::new(shares).ok_or(Reject::TooLarge)?,
        })
    }
}
