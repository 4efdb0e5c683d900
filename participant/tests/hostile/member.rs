//! One member: its voice, its ledger in memory, and the steps of its conversations, in the order in
//! which the daemon takes them.

use std::{collections::BTreeMap, sync::Arc};

use firn_ledger::{
    journal::check_with,
    rules::{
        Answer, AttemptOpened, Body, CeremonyStep, Command, Completed, Genesis, Limits,
        PlanAccepted, ShareActivated, Started, View,
    },
};
use firn_participant::{
    rules::ParticipantRules,
    session::{
        AskedOutcome, AwaitFinal, AwaitPackage, KeyInUse, LedgerStatus, OwnState, Peers,
        ReceiptTerms, RefusedOpening, Refusing, ShownEpoch, Speaker,
        dkg::{
            AwaitCertificates, AwaitDelivery, AwaitRound1Set, DeliveryError, Opened, OwnSoftware,
            certify_command,
        },
        judge_request, witness,
    },
    store::{CommitError, Committed, Durable, MemoryFiles, MemoryStore},
};
use firn_protocol::{
    codec::Text,
    documents::{Certificate, Receipt, Sealing},
    envelope::{Endorsed, Envelope},
    ids::{BuildDigest, Identifier, MessageDigest, Nonce, PlanDigest, SessionId, UnixMillis},
    messages::{
        CertificateSet, Commitments, Delivery, DkgOpen, DkgRound1Set, DkgRound2, Final,
        KeyDocuments, MemberStatus, OutcomeQuery, OutcomeStatement, Package, ShareList, SignOpen,
        message_digest,
    },
    reject::Reject,
    sharing::{ActiveSharing, CertifiedSharing},
    threshold::SigningShare,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use zeroize::Zeroizing;

use super::{
    people::{number, person},
    world::{Domain, SKEW_MS, STEP_MS},
};

pub struct Member {
    pub place: Identifier,
    pub ledger: MemoryStore<ParticipantRules>,
    pub files: MemoryFiles,
    pub peers: Peers,
    speaker: Speaker,
    rng: ChaCha20Rng,
    vault: BTreeMap<SessionId, Zeroizing<[u8; 32]>>,
    in_use: Option<(Arc<KeyInUse>, SigningShare)>,
}

/// A session that has sent its commitments.
pub struct Session {
    pub machine: AwaitPackage,
    pub commitments: Envelope<Commitments>,
    pub terms: ReceiptTerms,
}

/// What an opening leads to.
pub enum Opening {
    Session(Box<Session>),
    Stored(Envelope<Receipt>),
}

/// A session that has sent its shares.
pub struct Shared {
    pub machine: AwaitFinal,
    pub shares: Envelope<ShareList>,
    pub terms: ReceiptTerms,
}

fn own_software() -> OwnSoftware {
    OwnSoftware {
        sealing: Sealing::KeyFile,
        software: Text::new("firn").unwrap(),
        build: BuildDigest::from_bytes([0; 32]),
    }
}

pub fn rules() -> ParticipantRules {
    ParticipantRules {
        limits: Limits {
            max_attempts_per_grant: 4,
            ..Limits::default()
        },
    }
}

impl Member {
    pub fn new(place: u16) -> Self {
        let files = MemoryFiles::default();
        let mut member = Self {
            place: number(place),
            ledger: MemoryStore::open(rules(), files.clone()).unwrap(),
            files,
            peers: Peers::new(),
            speaker: Speaker::new(person(number(place)).secret()),
            rng: ChaCha20Rng::from_seed([u8::try_from(place).unwrap(); 32]),
            vault: BTreeMap::new(),
            in_use: None,
        };
        let genesis = Genesis {
            identity: member.speaker.identity(),
            nonce: Nonce::from_bytes([1; 32]),
        };
        member
            .write(Command::Begin(genesis), super::world::NOW)
            .unwrap();
        member.start(super::world::NOW);
        member
    }

    /// A new run of the process.
    pub fn start(&mut self, now: UnixMillis) {
        let started = Started {
            software: Text::new("firn").unwrap(),
            build: BuildDigest::from_bytes([0; 32]),
        };
        self.write(Command::Start(started), now).unwrap();
    }

    /// A new run on an old disk.
    pub fn restore(&mut self, disk: MemoryFiles, now: UnixMillis) {
        self.ledger = MemoryStore::open(rules(), disk.clone()).unwrap();
        self.files = disk;
        self.start(now);
    }

    /// A copy of the disk as it is.
    pub fn disk(&self) -> MemoryFiles {
        MemoryFiles::holding(self.files.synced())
    }

    pub fn write(
        &mut self,
        command: Command,
        now: UnixMillis,
    ) -> Result<Committed<Answer>, Reject> {
        self.ledger
            .commit(command, now)
            .map_err(|error| match error {
                CommitError::Refused(code) => code,
                error @ (CommitError::TooLarge | CommitError::Busy | CommitError::Stopped) => {
                    panic!("{error}")
                }
            })
    }

    pub fn state(&self) -> View<'_> {
        View(self.ledger.view().state())
    }

    /// How many records of this kind the journal holds.
    pub fn count(&self, kind: &str) -> usize {
        let mut found = 0;
        check_with(&mut self.files.synced(), &[], |record| {
            found += usize::from(Body::of(record).unwrap().kind() == kind);
            Ok(())
        });
        found
    }

    /// The opening of a signing session, up to its commitments.
    pub fn open(&mut self, domain: &Domain, open: &SignOpen) -> Result<Opening, Reject> {
        let in_use = self.in_use.as_ref().map(|(key, _)| Arc::clone(key));
        let known = in_use.filter(|key| key.sharing.certified().key_id() == domain.key_id());
        let find = |key_id| match known {
            Some(key) if key.sharing.certified().key_id() == key_id => Ok(key),
            _ => Err(Reject::KeyUnknown),
        };
        let request = match judge_request(open, find, &domain.authorities, domain.time()) {
            Ok((_, request)) => request,
            Err(refused) => return Err(self.refuse(&refused, domain)),
        };
        let committed = self.write(request.command, domain.now)?;
        match committed.answer {
            Answer::Written => {}
            Answer::AlreadyCompleted(receipt) => return Ok(Opening::Stored(receipt)),
            Answer::Denied(code) => return Err(code),
        }
        let (machine, commitments) = AwaitPackage::start(
            request.judged,
            &committed.durable,
            &self.in_use.as_ref().unwrap().1,
            &self.speaker,
            &self.peers,
            domain.now,
            &mut self.rng,
        )?;
        Ok(Opening::Session(Box::new(Session {
            machine,
            commitments,
            terms: request.terms,
        })))
    }

    /// What became of a request.
    pub fn ask(
        &self,
        domain: &Domain,
        query: &Envelope<OutcomeQuery>,
    ) -> Result<OutcomeStatement, Reject> {
        let in_use = self.in_use.as_ref().map(|(key, _)| key);
        let place = |key_id| match in_use {
            Some(key) if key.sharing.certified().key_id() == key_id => Ok(key.member),
            _ => Err(Reject::KeyUnknown),
        };
        let asked = AskedOutcome::judge(query, place, &domain.authorities)?;
        let found = asked.look(&self.ledger.view())?;
        let said = asked.answer(found, &self.speaker, domain.now)?;
        Ok((*said.verify(&self.speaker.identity()).unwrap()).clone())
    }

    /// How the member is, to whoever asks with this nonce; nothing but the ledger has stopped it.
    pub fn status(&self, domain: &Domain, nonce: Nonce, stopped: Option<Reject>) -> MemberStatus {
        let name = person(self.place).id("participant");
        let own = OwnState {
            name: &name,
            own: &own_software(),
            authorities: domain.authorities_digest,
            stopped,
            certificate_expires: UnixMillis::new(77),
            now: domain.now,
        };
        let found = LedgerStatus::look(&self.ledger.view()).unwrap();
        let said = found.say(nonce, &own, &self.speaker).unwrap();
        (*said.verify(&self.speaker.identity()).unwrap()).clone()
    }

    /// What a valid grant shows is on disk before anybody is told no.
    fn refuse(&mut self, refused: &RefusedOpening, domain: &Domain) -> Reject {
        let shown = refused.shown().map(ShownEpoch::command);
        let raised = shown.map_or(Ok(()), |raise| self.write(raise, domain.now).map(|_| ()));
        refused.code(raised)
    }

    /// The package, the gates once more, the record, the shares.
    pub fn release(
        &mut self,
        domain: &Domain,
        session: Session,
        package: &Package,
    ) -> Result<Shared, Refusing> {
        let (key, share) = self.in_use.as_ref().unwrap();
        let (machine, terms) = (session.machine, session.terms);
        let identity = self.speaker.identity();
        let releasing = machine.package(package, key.sharing.certified(), &identity)?;
        terms.still_granted(domain.time())?;
        releasing
            .compare_clocks(domain.now, STEP_MS, SKEW_MS)
            .map_err(|_| Reject::ClockSkew)?;
        let root_at = |size| self.ledger.view().tree().root_at(size).ok();
        if let Err(conflict) = releasing.check_own_heads(root_at) {
            let frozen = self.ledger.commit(conflict.command(), domain.now);
            assert!(frozen.is_ok(), "its own signature proves it");
            return Err(Reject::from(conflict).into());
        }
        let witnessed = releasing.witnessed();
        let command = Command::Release {
            session: releasing.session(),
            package: releasing.package(),
            witnessed: witnessed.clone(),
        };
        let committed = self.ledger.commit(command, domain.now);
        let committed = committed.map_err(|error| match error {
            CommitError::Refused(code) => code,
            error @ (CommitError::TooLarge | CommitError::Busy | CommitError::Stopped) => {
                panic!("{error}")
            }
        })?;
        witness(&mut self.peers, witnessed);
        let (machine, shares) =
            releasing.released(&committed.durable, share, &self.speaker, domain.now)?;
        Ok(Shared {
            machine,
            shares,
            terms,
        })
    }

    /// The signatures, and the receipt that stands for the request from here on.
    pub fn finish(
        &mut self,
        domain: &Domain,
        shared: Shared,
        message: &Final,
    ) -> Result<Envelope<Receipt>, Reject> {
        let (key, _) = self.in_use.as_ref().unwrap();
        let session = shared.machine.session();
        let finished = shared.machine.finish(message, key.sharing.certified())?;
        let receipt = finished.receipt(&shared.terms, &self.speaker, domain.now)?;
        let completed = Completed {
            session,
            receipt: receipt.clone(),
        };
        match self.write(Command::Complete(completed), domain.now)?.answer {
            Answer::Written => Ok(receipt),
            Answer::AlreadyCompleted(first) => Ok(first),
            Answer::Denied(code) => Err(code),
        }
    }

    /// A ceremony's opening and round one.
    pub fn begin(
        &mut self,
        domain: &Domain,
        open: &DkgOpen,
        accepted: Option<&Endorsed>,
    ) -> Result<AwaitRound1Set, Reject> {
        let opened = Opened::judge(
            open,
            accepted,
            &domain.authorities,
            domain.authorities_digest,
            &self.speaker.identity(),
            domain.now,
        )?;
        let plan = opened.attempt().plan_digest();
        self.write(Command::AcceptPlan(PlanAccepted { plan }), domain.now)?;
        let committed = self.write(opened.command(), domain.now)?;
        let machine = opened.round1(
            &committed.durable,
            &self.speaker,
            &self.peers,
            domain.now,
            &mut self.rng,
        )?;
        let digest = message_digest(machine.message().as_bytes());
        self.send(domain, machine.attempt().id, CeremonyStep::Round1, digest)?;
        Ok(machine)
    }

    pub fn deal(
        &mut self,
        domain: &Domain,
        machine: AwaitRound1Set,
        set: &DkgRound1Set,
    ) -> Result<(DkgRound2, AwaitDelivery), Refusing> {
        let dealt = machine.deal(set, &self.speaker, &mut self.rng)?;
        let recorded = self.send(
            domain,
            dealt.attempt().id,
            CeremonyStep::Round2,
            dealt.digest(),
        )?;
        Ok(dealt.sent(&recorded))
    }

    pub fn certify(
        &mut self,
        domain: &Domain,
        machine: AwaitDelivery,
        delivery: &Delivery,
    ) -> Result<(Envelope<Certificate>, AwaitCertificates), DeliveryError> {
        let new = machine.finish(delivery, &self.speaker, &own_software())?;
        let attempt = new.attempt().id;
        self.vault.insert(attempt, new.share().to_bytes().unwrap());
        self.write(new.command(), domain.now)?;
        let recorded = self.send(domain, attempt, CeremonyStep::Certificate, new.digest())?;
        Ok(new.sent(&recorded))
    }

    pub fn hold(
        &mut self,
        domain: &Domain,
        machine: AwaitCertificates,
        set: &CertificateSet,
    ) -> Result<CertifiedSharing, Reject> {
        let (sharing, command) = machine.finish(set)?;
        self.write(command, domain.now)?;
        Ok(sharing)
    }

    /// What the operators deliver.
    pub fn activate(&mut self, domain: &Domain, documents: &KeyDocuments) -> Result<(), Reject> {
        let digest = domain.authorities_digest;
        let sharing = ActiveSharing::verify(documents, &domain.authorities, digest)?;
        let certified = sharing.certified();
        self.write(certify_command(certified)?, domain.now)?;
        let activated = ShareActivated {
            key_id: certified.key_id(),
            share_version: certified.share_version(),
            activation: sharing.activation_digest(),
            certificates: certified.set_digest(),
            policy: sharing.policy_digest(),
            policy_version: sharing.policy().version,
            authorities: digest,
            network: certified.plan().network,
            first_epoch: sharing.activation().first_epoch,
        };
        self.write(Command::Activate(activated), domain.now)?;
        let bytes = &self.vault[&certified.attempt()?];
        let share = SigningShare::from_bytes(self.place, bytes, certified.public())
            .map_err(|_| Reject::ShareUnavailable)?;
        let member = self.place;
        self.in_use = Some((Arc::new(KeyInUse { sharing, member }), share));
        Ok(())
    }

    fn send(
        &mut self,
        domain: &Domain,
        attempt: SessionId,
        step: CeremonyStep,
        digest: MessageDigest,
    ) -> Result<Durable, Reject> {
        let command = Command::Send {
            attempt,
            step,
            digest,
        };
        Ok(self.write(command, domain.now)?.durable)
    }

    /// Opens an attempt as the ledger sees it, without its secrets.
    pub fn open_attempt(&mut self, domain: &Domain, attempt: SessionId) -> Result<(), Reject> {
        let opened = AttemptOpened {
            attempt,
            plan: PlanDigest::from_bytes(*domain.key_id().as_bytes()),
            coordinator: super::people::CARRIER.id("coordinator"),
        };
        self.write(Command::OpenAttempt(opened), domain.now)
            .map(|_| ())
    }
}
