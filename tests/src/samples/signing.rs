//! A signing session of two members, as they would run it, from fixed randomness.

use firn_protocol::{
    codec::List,
    documents::InputSignature,
    envelope::{Envelope, Verified},
    ids::{Identifier, PackageDigest, SessionId},
    merkle::TreeSize,
    messages::{
        Commitments, News, NewsEntry, Package, PackageBody, ProofRecord, ShareList, SigningRecord,
        input_digest,
    },
    session::SessionHeader,
    sharing::CertifiedSharing,
    signable::Item,
    threshold::{NoncePair, SigningList, SigningShare, aggregate},
};
use rand_chacha::ChaCha20Rng;

use super::{
    dealing::{head, standing},
    people::People,
};

/// One session and everything that was said in it.
#[derive(Debug)]
pub struct Round {
    /// The session.
    pub header: Verified<SessionHeader>,
    /// What was signed.
    pub items: Vec<Item>,
    /// The members' commitments.
    pub commitments: Vec<Verified<Commitments>>,
    /// The coordinator's word on them.
    pub body: Verified<PackageBody>,
    /// The members' shares.
    pub shares: Vec<Verified<ShareList>>,
    /// The result.
    pub signatures: Vec<InputSignature>,
}

impl Round {
    pub(super) fn run(
        people: &People,
        certified: &CertifiedSharing,
        shares: &[SigningShare],
        header: Verified<SessionHeader>,
        items: Vec<Item>,
        mut news: Vec<NewsEntry>,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let session = header.session_id();
        let members = header.members.to_vec();
        let share_of = |member: Identifier| &shares[usize::from(member.value()) - 1];
        let mut nonces = Vec::new();
        let mut commitments = Vec::new();
        for own in members.iter().copied() {
            let (pairs, inputs): (Vec<_>, Vec<_>) = items
                .iter()
                .map(|_| NoncePair::commit(share_of(own), rng).unwrap())
                .unzip();
            // The first member has news, the others none.
            let entries = std::mem::take(&mut news);
            let said = people.member(own).sign(&Commitments {
                session,
                member: own,
                inputs: List::new(inputs).unwrap(),
                standing: standing(people, own),
                news: News {
                    from: TreeSize::new(14),
                    to: TreeSize::new(14 + entries.len() as u64),
                    entries: List::new(entries).unwrap(),
                },
            });
            commitments.push(said.verify(&people.member(own).key()).unwrap());
            nonces.push(pairs);
        }
        let lists: Vec<Vec<_>> = (0..items.len())
            .map(|input| {
                commitments
                    .iter()
                    .map(|said| (said.member, said.inputs[input]))
                    .collect()
            })
            .collect();
        let digests = lists
            .iter()
            .map(|list| input_digest(list).unwrap())
            .collect();
        let body = people.coordinator.sign(&PackageBody {
            session,
            inputs: List::new(digests).unwrap(),
        });
        let body = body.verify(&people.coordinator.key()).unwrap();
        let lists: Vec<_> = lists
            .iter()
            .zip(&items)
            .map(|(list, item)| SigningList::new(&members, list, &item.message).unwrap())
            .collect();
        let mut said = Vec::new();
        for (own, pairs) in members.iter().copied().zip(nonces) {
            let made = pairs
                .into_iter()
                .zip(&lists)
                .zip(&items)
                .map(|((pair, list), item)| {
                    pair.sign(list, share_of(own), item.address.as_ref())
                        .unwrap()
                })
                .collect();
            let list = people.member(own).sign(&ShareList {
                session,
                member: own,
                package: PackageDigest::from_bytes(body.digest()),
                shares: List::new(made).unwrap(),
                checkpoint: head(people, own),
            });
            said.push(list.verify(&people.member(own).key()).unwrap());
        }
        let signatures = items
            .iter()
            .zip(&lists)
            .enumerate()
            .map(|(place, (item, list))| {
                let shares: Vec<_> = said
                    .iter()
                    .map(|said| (said.member, said.shares[place]))
                    .collect();
                let key = item.key(certified.public()).unwrap();
                InputSignature {
                    input: item.input,
                    signature: aggregate(list, &shares, &key).unwrap(),
                }
            })
            .collect();
        Self {
            header,
            items,
            commitments,
            body,
            shares: said,
            signatures,
        }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.header.session_id()
    }

    /// The package, as the coordinator sends it.
    #[must_use]
    pub fn package(&self) -> Package {
        Package {
            body: self.body.envelope().clone(),
            commitments: List::new(envelopes(&self.commitments)).unwrap(),
        }
    }

    /// The evidence of a request's session.
    #[must_use]
    pub fn signing_record(&self) -> SigningRecord {
        SigningRecord {
            header: self.header.envelope().clone(),
            commitments: List::new(envelopes(&self.commitments)).unwrap(),
            package: self.body.envelope().clone(),
            shares: List::new(envelopes(&self.shares)).unwrap(),
        }
    }

    /// The evidence of a proof of life.
    #[must_use]
    pub fn proof_record(&self) -> ProofRecord {
        ProofRecord {
            header: self.header.envelope().clone(),
            commitments: List::new(envelopes(&self.commitments)).unwrap(),
            package: self.body.envelope().clone(),
            shares: List::new(envelopes(&self.shares)).unwrap(),
            signature: self.signatures[0],
        }
    }
}

fn envelopes<T>(said: &[Verified<T>]) -> Vec<Envelope<T>> {
    said.iter().map(|said| said.envelope().clone()).collect()
}
