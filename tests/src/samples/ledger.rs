//! Member 1's ledger in the samples' world: what the rules judge an opening by.

use firn_ledger::{
    journal::{MAX_RECORD_BYTES, Record, RecordHash},
    rules::{
        Answer, AttemptOpened, AuthoritiesAccepted, Body, Command, Genesis, Limits, PlanAccepted,
        Refused, ShareActivated, ShareCertified, SharePending, Started, View, admit, apply,
    },
    table::MemoryTable,
};
use firn_protocol::{
    codec::{self, Blob, Text},
    ids::{BuildDigest, KeyId, MessageDigest, Nonce},
    names::SpiffeId,
    reject::Reject,
};

use super::{
    NOW,
    domain::{Domain, FIRST_EPOCH},
    people::member,
};

/// A ledger in memory that holds what its records amount to.
#[derive(Debug, Default)]
pub struct Ledger {
    table: MemoryTable,
    records: u64,
}

impl Ledger {
    /// Up to the activation of the samples' key, with its first epoch in the requester's hands.
    pub(super) fn with_key(domain: &Domain) -> Self {
        let mut ledger = Self::default();
        let certified = &domain.certified;
        let attempt = domain.dealing.header.session_id();
        let build = BuildDigest::from_bytes([0xb1; 32]);
        let commands = [
            Command::Begin(Genesis {
                identity: domain.people.member(member(1)).key(),
                nonce: Nonce::from_bytes([9; 32]),
            }),
            Command::Start(Started {
                software: Text::new("firn 0.1.0").unwrap(),
                build,
            }),
            Command::AcceptAuthorities(AuthoritiesAccepted {
                authorities: domain.authorities_digest,
                version: domain.authorities.version,
            }),
            Command::AcceptPlan(PlanAccepted {
                plan: certified.plan_digest(),
            }),
            Command::OpenAttempt(AttemptOpened {
                attempt,
                plan: certified.plan_digest(),
                coordinator: domain.people.coordinator_id(),
            }),
            Command::Pend(SharePending {
                key_id: certified.key_id(),
                share_version: certified.share_version(),
                attempt,
                plan: certified.plan_digest(),
                member: member(1),
                certificate: MessageDigest::from_bytes([7; 32]),
            }),
            Command::Certify(ShareCertified {
                key_id: certified.key_id(),
                share_version: certified.share_version(),
                attempt,
                certificates: certified.set_digest(),
            }),
            Command::Activate(ShareActivated {
                key_id: certified.key_id(),
                share_version: certified.share_version(),
                activation: domain.activation_digest(),
                certificates: certified.set_digest(),
                policy: domain.policy_digest(),
                policy_version: domain.key.sharing.policy().version,
                authorities: domain.authorities_digest,
                network: certified.plan().network,
                first_epoch: FIRST_EPOCH,
            }),
            Command::RaiseEpoch {
                key_id: certified.key_id(),
                epoch: FIRST_EPOCH,
                owner: domain.people.requester_id(),
            },
        ];
        for command in commands {
            ledger.commit(command);
        }
        ledger
    }

    /// What the rules say about a command, without writing anything.
    ///
    /// # Errors
    /// The code, whether it comes as a refusal or as an answer.
    pub fn judge(&self, command: Command) -> Result<Vec<Body>, Reject> {
        let admitted = admit(
            &View(&self.table),
            Limits::default(),
            command,
            NOW,
            Some(NOW),
        );
        match admitted {
            Ok((_, Answer::Denied(code))) | Err(Refused::Rule(code)) => Err(code),
            Ok((bodies, Answer::Written | Answer::AlreadyCompleted(_))) => Ok(bodies),
            Err(Refused::State(error)) => panic!("the samples' ledger cannot be read: {error}"),
        }
    }

    /// Who holds the key's highest epoch.
    #[must_use]
    pub fn owner(&self, key_id: KeyId) -> Option<SpiffeId> {
        let state = View(&self.table).epoch(key_id).unwrap();
        state.and_then(|state| state.owner.0)
    }

    pub(super) fn commit(&mut self, command: Command) {
        for body in self.judge(command).unwrap() {
            let new = body.to_record().unwrap();
            let fields = (
                self.records,
                new.kind(),
                NOW,
                Blob::<{ MAX_RECORD_BYTES }>::new(new.body().to_vec()).unwrap(),
                RecordHash::genesis(),
            );
            let bytes = codec::encode(&fields).unwrap();
            let record: Record = codec::decode(&bytes, MAX_RECORD_BYTES).unwrap();
            apply(&mut self.table, &record).unwrap();
            self.records += 1;
        }
    }
}
