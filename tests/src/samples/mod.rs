//! One sample of every document and of every message, all from one small world that never changes:
//! three members, a key from a real DKG, one payment signed by two of them. Each comes with what its
//! receiver does with it.

mod asked;
mod dealing;
mod domain;
mod judge;
mod kinds;
mod ledger;
mod people;
mod signing;

use std::sync::LazyLock;

use firn_participant::session::GrantTime;
use firn_protocol::{
    codec,
    documents::{Completed, Outcome, Receipt},
    envelope::{Envelope, digest_of},
    ids::{Flow, Nonce, SessionId, UnixMillis},
    messages::{SignOpen, message_digest},
    reject::Reject,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

pub use asked::ACCEPTED;
pub use dealing::{Dealing, head, standing};
pub use domain::{DESTINATION, Domain, FIRST_EPOCH, Opening, output, rules};
pub use kinds::{DOCUMENTS, Kind, MESSAGES, all};
pub use ledger::Ledger;
pub use people::{People, Person, id, member};
pub use signing::Round;

/// The time in the samples' world.
pub const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);

/// How member 1 judges a grant's time: its clock is right.
pub(crate) const TIME: GrantTime = GrantTime {
    now: NOW,
    skew_ms: 0,
    max_life_ms: 3_600_000,
};

/// What the samples are taken from.
pub struct World {
    domain: Domain,
    /// The request that everything is about, before anybody signs.
    pub opening: Opening,
    /// The same, signed.
    pub open: SignOpen,
    /// Its session.
    pub request: Round,
    /// The members' receipts.
    pub receipts: Vec<Envelope<Receipt>>,
    /// A proof of life of each pair of members.
    pub proofs: Vec<Round>,
    /// Member 1's ledger before the request.
    pub ledger: Ledger,
    /// A session that this ledger has seen.
    pub seen: Opening,
}

/// What becomes of a change to a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// Every byte is bound by a signature: any change is refused.
    EndToEnd,
    /// Some of it is the word of whoever is at the other end, which only the connection protects:
    /// another word is another message. On a coordinator's nobody acts; a daemon and the operator of
    /// its machine hold the same machine.
    OnItsWord,
}

/// Who signs a document.
#[derive(Debug, Clone, Copy)]
pub enum Signer {
    /// One person.
    One(fn(&World) -> &Person),
    /// The operators.
    Operators,
}

/// One sample.
#[derive(Clone)]
pub struct Sample {
    /// Its name, which is also that of its vector.
    pub name: String,
    /// What it is of.
    pub kind: Kind,
    /// Its rule in docs/protocol.cddl.
    pub rule: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The most bytes that its receiver takes.
    pub limit: usize,
    /// What binds it.
    pub carried: Carried,
    /// For a document: who signs it.
    pub signer: Option<Signer>,
    /// What its receiver does.
    pub judge: fn(&World, &[u8]) -> Result<(), Reject>,
    pub(crate) digest: [u8; 32],
}

impl Sample {
    /// A document's digest, or a message's.
    #[must_use]
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl World {
    /// The one world.
    #[must_use]
    pub fn fixed() -> &'static Self {
        static WORLD: LazyLock<World> = LazyLock::new(World::new);
        &WORLD
    }

    /// The nonce of the requester's hello.
    #[must_use]
    pub const fn hello_nonce(&self) -> Nonce {
        Nonce::from_bytes([0x4e; 32])
    }

    fn new() -> Self {
        let mut rng = ChaCha20Rng::from_seed([0x5e; 32]);
        let domain = Domain::new(&mut rng);
        let people = &domain.people;
        let mut round = |header, items, news| {
            let header = people.coordinator.sign(&header);
            let header = header.verify(&people.coordinator.key()).unwrap();
            let (certified, shares) = (&domain.certified, &domain.shares);
            Round::run(people, certified, shares, header, items, news, &mut rng)
        };
        let opening = domain.opening(domain.intent(domain.psbt(60_000)), 1);
        let signable = domain.understand(&opening.intent);
        let items = signable.items().to_vec();
        let news = kinds::news(&domain);
        let request = round(opening.header.clone(), items, news);
        let proofs = [[1, 2], [1, 3], [2, 3]].map(|pair| {
            let nonce = 0xf0 | u8::try_from(pair[0] * 4 + pair[1]).unwrap();
            let header = domain.ceremony_header(Flow::ProofOfLife, &pair, nonce);
            let item = domain.challenge(&header);
            round(header, vec![item], Vec::new())
        });
        let receipts = [1, 2].map(|number| {
            people.member(member(number)).sign(&Receipt {
                key_id: domain.key_id(),
                request_id: opening.grant.request_id,
                intent: opening.grant.intent,
                policy: opening.grant.policy,
                epoch: opening.grant.epoch,
                session: request.id(),
                outcome: Outcome::Completed(Completed {
                    signatures: codec::List::new(request.signatures.clone()).unwrap(),
                }),
                position: 19 + u64::from(number),
                checkpoint: head(people, member(number)),
                time: NOW,
            })
        });
        let open = domain.signed(&opening);
        let mut ledger = Ledger::with_key(&domain);
        // What replays are measured by: a request of its own intent, and one with two attempts.
        let seen = domain.opening(domain.intent(domain.psbt(61_000)), 0x61);
        let first = domain.opening(domain.intent(domain.psbt(62_000)), 0x62);
        let mut second = first.clone();
        second.header.nonce = Nonce::from_bytes([0x99; 32]);
        for opening in [&seen, &first, &second] {
            let key = |_| Ok(domain.key.clone());
            let open = domain.signed(opening);
            let authorities = &domain.authorities;
            let (_, judged) =
                firn_participant::session::judge_request(&open, key, authorities, TIME).unwrap();
            ledger.commit(judged.command);
        }
        Self {
            opening,
            open,
            request,
            receipts: receipts.to_vec(),
            proofs: Vec::from(proofs),
            ledger,
            seen,
            domain,
        }
    }

    /// The id of a header's session.
    #[must_use]
    pub fn session_id(&self, opening: &Opening) -> SessionId {
        let payload = codec::encode(&opening.header).unwrap();
        SessionId::from_bytes(digest_of::<firn_protocol::session::SessionHeader>(&payload))
    }
}

impl std::ops::Deref for World {
    type Target = Domain;

    fn deref(&self) -> &Domain {
        &self.domain
    }
}

pub(crate) fn digest_of_message(bytes: &[u8]) -> [u8; 32] {
    *message_digest(bytes).as_bytes()
}
