//! A signing session after its gates: nonces, package, shares, final. The same states serve a
//! request and a proof of life, which differ only in what they end with.

use firn_ledger::rules::{Command, Frozen, Witnessed};
use firn_protocol::{
    bitcoin::verify_bip340,
    codec::List,
    documents::{Checkpoint, Completed, InputSignature, Outcome, Receipt, SignedCheckpoint},
    envelope::{Envelope, Verified},
    ids::{Identifier, PackageDigest, SignatureShare, UnixMillis},
    keys::IdentityKey,
    merkle::{MerkleRoot, TreeSize},
    messages::{
        Commitment, Commitments, Final, News, Package, PackageBody, ShareList, input_digest,
    },
    reject::Reject,
    sharing::CertifiedSharing,
    threshold::{NoncePair, SigningList, SigningShare, ThresholdError},
};
use rand_core::CryptoRng;

use super::{
    ClockSkew, HedgedRng, Judged, Peers, Refusing, SaidBetween, Speaker, gate::ReceiptTerms,
};
use crate::store::Durable;

/// Waits for all commitments. It holds the nonces, for seconds.
pub struct AwaitPackage {
    judged: Judged,
    nonces: Vec<NoncePair>,
    own: Envelope<Commitments>,
    opened: UnixMillis,
}

/// The package is good; shares may be made once its record is on disk.
pub struct Releasing {
    session: AwaitPackage,
    package: PackageDigest,
    lists: Vec<SigningList>,
    witnessed: Vec<Witnessed>,
    own_heads: Vec<Verified<Checkpoint>>,
    clocks: Vec<(Identifier, UnixMillis)>,
}

/// A head that this participant has signed, and that its ledger does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessConflict {
    /// It.
    pub witnessed: SignedCheckpoint,
}

impl WitnessConflict {
    /// What is to be written: from there on nothing is signed.
    #[must_use]
    pub fn command(&self) -> Command {
        Command::Freeze(Frozen {
            witnessed: self.witnessed.clone(),
        })
    }
}

impl From<WitnessConflict> for Reject {
    fn from(_: WitnessConflict) -> Self {
        Self::WitnessConflict
    }
}

/// Waits for the signatures. The nonces are gone.
pub struct AwaitFinal {
    judged: Judged,
    position: u64,
    checkpoint: SignedCheckpoint,
}

/// The signatures are good.
pub struct Finished {
    /// They, ascending by input.
    pub signatures: Vec<InputSignature>,
    session: AwaitFinal,
}

impl AwaitPackage {
    /// Makes a nonce pair for each item. The token says that the session is on disk.
    ///
    /// # Errors
    /// [`Reject::Internal`] when the list does not fit, which the gates rule out.
    pub fn start<R: CryptoRng>(
        judged: Judged,
        durable: &Durable,
        share: &SigningShare,
        speaker: &Speaker,
        peers: &Peers,
        now: UnixMillis,
        rng: &mut R,
    ) -> Result<(Self, Envelope<Commitments>), Reject> {
        let head = durable.head();
        let mut nonces = Vec::new();
        let mut inputs = Vec::new();
        for item in &judged.items {
            let mut hedged = HedgedRng::new(rng, judged.session, item.input, head);
            let (pair, commitment) = NoncePair::commit(share, &mut hedged).map_err(internal)?;
            nonces.push(pair);
            inputs.push(commitment);
        }
        let commitments = Commitments {
            session: judged.session,
            member: judged.member,
            inputs: List::new(inputs).ok_or(Reject::Internal)?,
            standing: speaker.standing(durable, peers, now)?,
            // A range of nothing: it claims nothing.
            news: News {
                from: head.size,
                to: head.size,
                entries: List::empty(),
            },
        };
        let own = speaker.sign(&commitments)?;
        Ok((
            Self {
                judged,
                nonces,
                own: own.clone(),
                opened: now,
            },
            own,
        ))
    }

    /// Judges the package: the coordinator's signature, every member's, this participant's own
    /// entry byte for byte, and the digest of every list.
    ///
    /// # Errors
    /// What is wrong, and who said it.
    pub fn package(
        self,
        package: &Package,
        certified: &CertifiedSharing,
        identity: &IdentityKey,
    ) -> Result<Releasing, Refusing> {
        let body = package.body.clone().verify(&self.judged.coordinator)?;
        if body.session != self.judged.session {
            return Err(Reject::SessionMismatch.into());
        }
        let commitments = self.verify_commitments(package, certified)?;
        let (witnessed, own_heads) = self.standings(&commitments, certified, identity)?;
        let lists = self.lists(&body, &commitments)?;
        Ok(Releasing {
            package: PackageDigest::from_bytes(body.digest()),
            lists,
            witnessed,
            own_heads,
            clocks: self.clocks(&commitments),
            session: self,
        })
    }

    fn verify_commitments(
        &self,
        package: &Package,
        certified: &CertifiedSharing,
    ) -> Result<Vec<Verified<Commitments>>, Refusing> {
        if package.commitments.len() != self.judged.members.len() {
            return Err(Reject::PackageMembers.into());
        }
        self.judged
            .members
            .iter()
            .zip(&package.commitments)
            .map(|(member, envelope)| {
                let entry = certified.member(*member).ok_or(Reject::SessionMembers)?;
                if *member == self.judged.member && *envelope != self.own {
                    return Err(Reject::PackageAltered.into());
                }
                // What its carrier may have damaged or replayed is nobody else's fault.
                let commitments = envelope.clone().verify(&entry.identity)?;
                if commitments.session != self.judged.session {
                    return Err(Reject::SessionMismatch.into());
                }
                if commitments.member != *member {
                    return Err(Refusing::of(Reject::PackageMembers, *member));
                }
                if commitments.inputs.len() != self.judged.items.len() {
                    return Err(Refusing::of(Reject::InputCount, *member));
                }
                Ok(commitments)
            })
            .collect()
    }

    /// The others' heads, and what they have witnessed of this participant's own. Only what an
    /// owner signed itself counts for or against it.
    fn standings(
        &self,
        commitments: &[Verified<Commitments>],
        certified: &CertifiedSharing,
        identity: &IdentityKey,
    ) -> Result<(Vec<Witnessed>, Vec<Verified<Checkpoint>>), Refusing> {
        let mut heads = Vec::new();
        let mut own_heads = Vec::new();
        for said in commitments
            .iter()
            .filter(|said| said.member != self.judged.member)
        {
            let blame = |code: Reject| Refusing::of(code, said.member);
            let speaker = *said.signer();
            let checkpoint = said.standing.checkpoint.clone();
            checkpoint
                .clone()
                .verify(&speaker)
                .map_err(|error| blame(error.into()))?;
            heads.push(Witnessed {
                identity: speaker,
                checkpoint,
            });
            for seen in &said.standing.witnessed {
                let owner = seen.claimed_signer().map_err(|error| blame(error.into()))?;
                if certified.plan().member(&owner).is_some() {
                    let head = seen
                        .clone()
                        .verify(&owner)
                        .map_err(|error| blame(error.into()))?;
                    if owner == *identity {
                        own_heads.push(head);
                    }
                }
            }
        }
        Ok((heads, own_heads))
    }

    /// What the others' clocks said when they sent their commitments.
    fn clocks(&self, commitments: &[Verified<Commitments>]) -> Vec<(Identifier, UnixMillis)> {
        let own = self.judged.member;
        commitments
            .iter()
            .filter(|said| said.member != own)
            .map(|said| (said.member, said.standing.time))
            .collect()
    }

    fn lists(
        &self,
        body: &PackageBody,
        commitments: &[Verified<Commitments>],
    ) -> Result<Vec<SigningList>, Refusing> {
        if body.inputs.len() != self.judged.items.len() {
            return Err(Reject::InputCount.into());
        }
        let mut lists = Vec::new();
        for (index, (item, digest)) in self.judged.items.iter().zip(&body.inputs).enumerate() {
            let list = input_list(commitments, index)?;
            if input_digest(&list)? != *digest {
                return Err(Reject::PackageDigest.into());
            }
            match SigningList::new(&self.judged.members, &list, &item.message) {
                Ok(list) => lists.push(list),
                Err(_) => return Err(no_point(&list, &item.message)),
            }
        }
        Ok(lists)
    }
}

impl Releasing {
    /// Compares every head of one's own that a peer has witnessed with one's own ledger at that
    /// size, which `root_at` tells: a later head, or another root, means that this ledger is an old
    /// copy or that another one is running.
    ///
    /// # Errors
    /// [`WitnessConflict`], with the head that proves it.
    pub fn check_own_heads(
        &self,
        root_at: impl Fn(TreeSize) -> Option<MerkleRoot>,
    ) -> Result<(), WitnessConflict> {
        let unknown = self
            .own_heads
            .iter()
            .find(|head| root_at(head.size) != Some(head.root));
        match unknown {
            None => Ok(()),
            Some(head) => Err(WitnessConflict {
                witnessed: head.envelope().clone(),
            }),
        }
    }

    /// Compares the others' clocks with this one, which says `now`. Their commitments were made after the
    /// session was begun, which may have been as long as `patience_ms` before it was opened here.
    ///
    /// # Errors
    /// The first member whose clock differs by more than `skew_ms`. Which of the two is wrong nobody can
    /// tell, so nobody is to blame.
    pub fn compare_clocks(
        &self,
        now: UnixMillis,
        patience_ms: u64,
        skew_ms: u64,
    ) -> Result<(), (Identifier, ClockSkew)> {
        let opened = self.session.opened.value();
        let said = SaidBetween {
            earliest: UnixMillis::new(opened.saturating_sub(patience_ms)),
            latest: now,
        };
        self.clocks.iter().try_for_each(|(member, theirs)| {
            said.compare(*theirs, skew_ms)
                .map_err(|skew| (*member, skew))
        })
    }

    /// The heads that came with the package, to be stored before they are said.
    #[must_use]
    pub fn witnessed(&self) -> Vec<Witnessed> {
        self.witnessed.clone()
    }

    /// The digest that the release is recorded for.
    #[must_use]
    pub const fn package(&self) -> PackageDigest {
        self.package
    }

    /// The session.
    #[must_use]
    pub const fn session(&self) -> firn_protocol::ids::SessionId {
        self.session.judged.session
    }

    /// Makes the shares and consumes the nonces. The token says that the release is on disk.
    ///
    /// # Errors
    /// [`Reject::Internal`] when FROST refuses what the gates let through.
    pub fn released(
        self,
        durable: &Durable,
        share: &SigningShare,
        speaker: &Speaker,
        now: UnixMillis,
    ) -> Result<(AwaitFinal, Envelope<ShareList>), Reject> {
        let AwaitPackage { judged, nonces, .. } = self.session;
        let shares = judged
            .items
            .iter()
            .zip(nonces)
            .zip(&self.lists)
            .map(|((item, nonces), list)| nonces.sign(list, share, item.address.as_ref()))
            .collect::<Result<Vec<SignatureShare>, ThresholdError>>()
            .map_err(internal)?;
        let checkpoint = speaker.checkpoint(durable, now)?;
        let list = ShareList {
            session: judged.session,
            member: judged.member,
            package: self.package,
            shares: List::new(shares).ok_or(Reject::Internal)?,
            checkpoint: checkpoint.clone(),
        };
        let envelope = speaker.sign(&list)?;
        // The release is the last of its command's records: heads come before it.
        let records = u64::try_from(durable.records()).map_err(|_| Reject::Internal)?;
        let position = durable
            .first()
            .value()
            .saturating_add(records)
            .saturating_sub(1);
        Ok((
            AwaitFinal {
                judged,
                position,
                checkpoint,
            },
            envelope,
        ))
    }
}

impl AwaitFinal {
    /// Verifies every signature against the key of its address; nothing is believed.
    ///
    /// # Errors
    /// [`Reject::FinalSignature`], or that it belongs to another session.
    pub fn finish(self, message: &Final, certified: &CertifiedSharing) -> Result<Finished, Reject> {
        if message.session != self.judged.session {
            return Err(Reject::SessionMismatch);
        }
        if message.signatures.len() != self.judged.items.len() {
            return Err(Reject::InputCount);
        }
        for (item, signed) in self.judged.items.iter().zip(&message.signatures) {
            let key = item.key(certified.public())?;
            let verifies =
                verify_bip340(key.output_key(), &item.message, signed.signature.as_bytes());
            if signed.input != item.input || !verifies {
                return Err(Reject::FinalSignature);
            }
        }
        Ok(Finished {
            signatures: message.signatures.to_vec(),
            session: self,
        })
    }

    /// The session.
    #[must_use]
    pub const fn session(&self) -> firn_protocol::ids::SessionId {
        self.judged.session
    }
}

impl Finished {
    /// The receipt of a request. It names the release and a checkpoint that covers it, which are on
    /// disk, so that it can be stored whole in the record that completes the request.
    ///
    /// # Errors
    /// Never: the signatures fit.
    pub fn receipt(
        &self,
        terms: &ReceiptTerms,
        speaker: &Speaker,
        now: UnixMillis,
    ) -> Result<Envelope<Receipt>, Reject> {
        let signatures = List::new(self.signatures.clone()).ok_or(Reject::Internal)?;
        speaker.sign(&Receipt {
            key_id: terms.key_id,
            request_id: terms.grant.request_id,
            intent: terms.intent,
            policy: terms.policy,
            epoch: terms.grant.epoch,
            session: self.session.judged.session,
            outcome: Outcome::Completed(Completed { signatures }),
            position: self.session.position,
            checkpoint: self.session.checkpoint.clone(),
            time: now,
        })
    }
}

/// One input's list of commitments, ascending by member.
pub(super) fn input_list(
    commitments: &[Verified<Commitments>],
    index: usize,
) -> Result<Vec<(Identifier, Commitment)>, Refusing> {
    commitments
        .iter()
        .map(|said| {
            let commitment = said
                .inputs
                .get(index)
                .ok_or(Refusing::of(Reject::InputCount, said.member))?;
            Ok((said.member, *commitment))
        })
        .collect()
}

/// The refusal of a list that FROST does not read, in the name of the member whose points are none.
fn no_point(list: &[(Identifier, Commitment)], message: &[u8; 32]) -> Refusing {
    let bad = |entry: &&(Identifier, Commitment)| {
        SigningList::new(&[entry.0], std::slice::from_ref(*entry), message).is_err()
    };
    Refusing {
        code: Reject::PackageMembers,
        culprit: list.iter().find(bad).map(|(member, _)| *member),
    }
}

/// What FROST refuses although the gates let it through is our own failure.
fn internal(_: ThresholdError) -> Reject {
    Reject::Internal
}
