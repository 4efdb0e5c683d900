//! Real processes on this machine: a throw-away domain, a coordinator and participants on ports that the
//! system picks. It decides when each is started, killed and ready; nothing waits for time to pass, only
//! for conditions that can be looked at, each with a deadline.

pub mod fault;
pub mod independent;
pub mod key;
pub mod process;
pub mod secrets;
pub mod trace;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use firn_ceremony::{
    authority::{self, PlanTerms},
    client::{OperatorLine, Peer, RequesterLine},
    domain::{Domain, DomainTerms, Party, files::write_document},
    ledger,
    local::LocalLine,
    now,
    payment::own_scripts,
};
use firn_ledger::{
    folder::Folder,
    journal::{Entry, Scanner},
    rules::Body,
};
use firn_protocol::{
    documents::{Activation, Plan},
    envelope::Approved,
    ids::{PlanDigest, UnixMillis},
    keys::IdentitySecret,
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
};
use rustix::process::Signal;
use serde::Serialize;
use tempfile::TempDir;

use crate::binaries::{Binaries, binaries};
use fault::Fault;
use key::{Key, NETWORK, rule_terms};
use process::{Process, until};

/// Shorter than in service, since members die in these tests and somebody waits for them.
const STEP_MS: u32 = 3_000;
const PLAN_VALIDITY_MS: u64 = 60 * 60 * 1000;

/// A coordinator and n participants. Members are numbered from 1 on, as in the roster.
#[derive(Debug)]
pub struct Cluster {
    // Before the folder, so that the processes end first.
    members: Vec<Option<Process>>,
    coordinator: Option<Process>,
    domain: Arc<Domain>,
    address: SocketAddr,
    threshold: u16,
    binaries: &'static Binaries,
    is_traced: bool,
    folder: TempDir,
}

impl Cluster {
    /// Starts a coordinator and `n` participants, any `t` of which will sign, and waits until all have
    /// been welcomed.
    pub async fn start(n: u16, t: u16) -> Self {
        Self::begin(n, t, false).await
    }

    /// The same with every process under strace.
    pub async fn start_traced(n: u16, t: u16) -> Self {
        Self::begin(n, t, true).await
    }

    /// A cluster with a key in use.
    pub async fn with_key(n: u16, t: u16) -> (Self, Key) {
        let cluster = Self::start(n, t).await;
        let key = cluster.activate(cluster.make_key().await).await;
        (cluster, key)
    }

    async fn begin(n: u16, t: u16, is_traced: bool) -> Self {
        let binaries = binaries();
        let folder = tempfile::tempdir().unwrap();
        let terms = DomainTerms {
            trust_domain: "cluster.test".parse().unwrap(),
            operators: &["ada", "ben", "cleo"],
            operators_needed: 2,
            requester: "treasury",
            coordinator: "relay",
            members: n,
        };
        let domain = Domain::create(&folder.path().join("domain"), &terms, now()).unwrap();
        domain.configure_coordinator().unwrap();
        let config = domain.coordinator().folder.config();
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("{text}\n[limits]\nstep_ms = {STEP_MS}\n")).unwrap();
        let mut cluster = Self {
            members: Vec::new(),
            coordinator: None,
            domain: Arc::new(domain),
            address: ([127, 0, 0, 1], 0).into(),
            threshold: t,
            binaries,
            is_traced,
            folder,
        };
        cluster.address = cluster.start_coordinator().await;
        cluster.domain.configure_members(cluster.address).unwrap();
        for number in 1..=usize::from(n) {
            let process = cluster.start_member(number).await;
            cluster.members.push(Some(process));
        }
        cluster.everybody_is_there().await;
        cluster
    }

    /// Who is who, and where everything is.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The same for whoever asks while processes come and go.
    #[must_use]
    pub fn shared_domain(&self) -> Arc<Domain> {
        Arc::clone(&self.domain)
    }

    /// A member, from 1 on.
    #[must_use]
    pub fn member(&self, number: usize) -> &Party {
        &self.domain.members()[number - 1]
    }

    /// How many members there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.domain.members().len()
    }

    /// A member's running process.
    ///
    /// # Panics
    /// If it has been killed.
    #[must_use]
    pub fn process(&self, number: usize) -> &Process {
        self.members[number - 1].as_ref().expect("it runs")
    }

    /// The coordinator's running process.
    ///
    /// # Panics
    /// If it has been killed.
    #[must_use]
    pub const fn coordinator(&self) -> &Process {
        self.coordinator.as_ref().expect("it runs")
    }

    /// Where a traced process's calls are written.
    #[must_use]
    pub fn trace(&self, party: &Party) -> PathBuf {
        self.folder.path().join(format!("{}.trace", party.name()))
    }

    /// What a process has logged.
    #[must_use]
    pub fn log(&self, party: &Party) -> String {
        fs::read_to_string(party.folder.log()).unwrap_or_default()
    }

    /// How many records a member's journal holds now, while it is perhaps being written.
    #[must_use]
    pub fn records_so_far(&self, number: usize) -> u64 {
        let checked = ledger::check(self.member(number).folder.path()).unwrap();
        checked.report.head.size.leaves()
    }

    /// Every record of a member's journal, which must be at rest and sound.
    #[must_use]
    pub fn journal(&self, number: usize) -> Vec<Body> {
        let checked = ledger::check(self.member(number).folder.path()).unwrap();
        let report = checked.report;
        assert!(report.is_sound(), "member {number}: {:?}", report.findings);
        let mut folder = Folder::open(&checked.folder).unwrap();
        let mut scanner = Scanner::new(&mut folder, &[]).unwrap();
        let mut bodies = Vec::new();
        while let Some(batch) = scanner.next_batch().unwrap() {
            let records = batch.entries().iter().map(Entry::record);
            bodies.extend(records.map(|record| Body::of(record).unwrap()));
        }
        assert_eq!(bodies.len() as u64, report.head.size.leaves());
        bodies
    }

    /// A requester's connection.
    pub async fn requester(&self) -> RequesterLine {
        RequesterLine::connect(self.domain.requester(), &self.peer())
            .await
            .unwrap()
    }

    /// An operator's connection.
    pub async fn operator(&self) -> OperatorLine {
        OperatorLine::connect(&self.domain.operators()[0], &self.peer())
            .await
            .unwrap()
    }

    /// Where the coordinator is.
    #[must_use]
    pub fn peer(&self) -> Peer {
        let holder = self.domain.authorities().coordinators.first().unwrap();
        Peer {
            address: self.address,
            holder: holder.clone(),
        }
    }

    /// Plan, acceptance on every member's machine, ceremony.
    pub async fn make_key(&self) -> CertifiedSharing {
        let plan = self.plan();
        for member in self.domain.members() {
            self.accept(member, &plan).await;
        }
        let operator = self.operator().await;
        let (record, checked) = operator.run(&plan, |_| {}).await.unwrap();
        self.keep("ceremony", &record);
        checked.sharing
    }

    /// Keeps in the domain's folder what the coordinator has seen, as evidence is kept.
    pub fn keep<T: Serialize>(&self, name: &str, document: &T) {
        let folder = self.domain.path().join("evidence");
        fs::create_dir_all(&folder).unwrap();
        write_document(&folder.join(format!("{name}.cbor")), document).unwrap();
    }

    /// Policy and activation, stored by every member.
    pub async fn activate(&self, sharing: CertifiedSharing) -> Key {
        let rules = authority::rules(&rule_terms()).unwrap();
        let secret = self.domain.policy_authority().unwrap();
        let policy = authority::first_policy(sharing.key_id(), rules, &secret).unwrap();
        let authorities = self.domain.authorities();
        let signed = policy
            .clone()
            .verify(&authorities.policy_authority)
            .unwrap();
        let digest = self.domain.authorities_digest();
        let activation = authority::activation(&sharing, &signed, digest);
        let activation = authority::endorse::<Activation>(&activation, &self.operators()).unwrap();
        let documents = authority::key_documents(&sharing, policy, activation).unwrap();
        let active = ActiveSharing::verify(&documents, authorities, digest).unwrap();
        let operator = self.operator().await;
        let delivered = operator.deliver(documents, &active).await.unwrap();
        assert_eq!(delivered.missing, []);
        let own = own_scripts(active.certified().public().group_key()).unwrap();
        Key { active, own }
    }

    /// Kills a member at once, as a power cut would.
    ///
    /// # Panics
    /// If it does not run.
    pub async fn kill(&mut self, number: usize) {
        let process = self.members[number - 1].take().expect("it runs");
        process.kill().await;
    }

    /// Asks a member to stop, and waits until it has.
    ///
    /// # Panics
    /// If it does not run, or stops in another way than it should.
    pub async fn stop(&mut self, number: usize) {
        let process = self.members[number - 1].take().expect("it runs");
        assert!(process.stop().await.success(), "member {number}");
    }

    /// Starts a member again, after killing it if it runs, and waits until it has been welcomed again.
    pub async fn restart(&mut self, number: usize) {
        let id = self.member(number).id.clone();
        let operator = self.operator().await;
        let since = async || {
            let presence = operator.presence().await.unwrap();
            let entry = presence.members.iter().find(|entry| entry.id == id);
            entry.map(|entry| entry.since)
        };
        let before = since().await;
        if let Some(process) = self.members[number - 1].take() {
            process.kill().await;
        }
        self.members[number - 1] = Some(self.start_member(number).await);
        let process = &mut self.members[number - 1];
        until("the member's new connection", async || {
            let ended = process.as_mut().and_then(Process::ended);
            assert_eq!(ended, None, "member {number} has ended");
            since().await.filter(|since| Some(*since) > before)
        })
        .await;
    }

    /// Starts a member that does not run, with a system that lies to it, and does not wait for it.
    ///
    /// # Panics
    /// If it runs.
    pub fn start_faulty(&mut self, number: usize, fault: &Fault) {
        let slot = &mut self.members[number - 1];
        assert!(slot.is_none(), "member {number} runs");
        let party = &self.domain.members()[number - 1];
        *slot = Some(Process::start_with(
            &self.binaries.participant,
            party,
            fault,
        ));
    }

    /// Starts a member that does not run in a mount namespace of its own, and does not wait for it.
    ///
    /// # Panics
    /// If it runs.
    pub fn start_mounted(&mut self, number: usize, mounts: &str) {
        let slot = &mut self.members[number - 1];
        assert!(slot.is_none(), "member {number} runs");
        let party = &self.domain.members()[number - 1];
        *slot = Some(Process::start_mounted(
            &self.binaries.participant,
            party,
            mounts,
        ));
    }

    /// Starts a member that does not run with these variables, and does not wait for it.
    ///
    /// # Panics
    /// If it runs.
    pub fn start_in(&mut self, number: usize, variables: &[(&str, PathBuf)]) {
        let slot = &mut self.members[number - 1];
        assert!(slot.is_none(), "member {number} runs");
        let party = &self.domain.members()[number - 1];
        *slot = Some(Process::start_in(
            &self.binaries.participant,
            party,
            variables,
        ));
    }

    /// Waits until the coordinator has welcomed a member that was not there before.
    ///
    /// # Panics
    /// If it ends instead.
    pub async fn is_welcomed(&mut self, number: usize) {
        let id = self.member(number).id.clone();
        let operator = self.operator().await;
        let process = &mut self.members[number - 1];
        until("the member's connection", async || {
            let ended = process.as_mut().and_then(Process::ended);
            assert_eq!(ended, None, "member {number} has ended");
            let presence = operator.presence().await.unwrap();
            let is_there = presence.members.iter().any(|entry| entry.id == id);
            is_there.then_some(())
        })
        .await;
    }

    /// Waits until the coordinator has noticed that a member is gone.
    pub async fn is_missed(&self, number: usize) {
        let id = self.member(number).id.clone();
        let operator = self.operator().await;
        until("the end of the member's connection", async || {
            let presence = operator.presence().await.unwrap();
            let is_there = presence.members.iter().any(|entry| entry.id == id);
            (!is_there).then_some(())
        })
        .await;
    }

    /// Whether a member that was started has not ended.
    #[must_use]
    pub fn is_running(&mut self, number: usize) -> bool {
        let process = self.members[number - 1].as_mut();
        process.is_some_and(|process| process.ended().is_none())
    }

    /// Waits until a member has ended by itself, and says whether it called that a success.
    ///
    /// # Panics
    /// If it does not run.
    pub async fn ends(&mut self, number: usize) -> bool {
        let mut process = self.members[number - 1].take().expect("it runs");
        process.end().await.success()
    }

    /// Starts a member that does not run, as it should be, and waits until it has been welcomed.
    ///
    /// # Panics
    /// If it runs, or does not come.
    pub async fn start_again(&mut self, number: usize) {
        assert!(self.members[number - 1].is_none(), "member {number} runs");
        self.restart(number).await;
    }

    /// Sends a member a signal.
    ///
    /// # Panics
    /// If it does not run.
    pub fn tell(&mut self, number: usize, signal: Signal) {
        self.members[number - 1]
            .as_mut()
            .expect("it runs")
            .tell(signal);
    }

    /// Kills the coordinator and starts it again at the same address; waits until all members that run
    /// have found it.
    ///
    /// # Panics
    /// If it does not run.
    pub async fn restart_coordinator(&mut self) {
        self.kill_coordinator().await;
        self.start_coordinator_again().await;
    }

    /// Kills the coordinator at once.
    ///
    /// # Panics
    /// If it does not run.
    pub async fn kill_coordinator(&mut self) {
        self.coordinator.take().expect("it runs").kill().await;
    }

    /// Starts a coordinator that was killed at the same address, and waits until all members that run
    /// have found it.
    ///
    /// # Panics
    /// If it runs, or another process has got its address.
    pub async fn start_coordinator_again(&mut self) {
        assert!(self.coordinator.is_none(), "the coordinator runs");
        let files = &self.domain.coordinator().folder;
        let text = fs::read_to_string(files.config()).unwrap();
        let fixed = text.replace("127.0.0.1:0\"", &format!("{}\"", self.address));
        fs::write(files.config(), fixed).unwrap();
        fs::remove_file(files.address()).unwrap();
        let address = self.start_coordinator().await;
        assert_eq!(address, self.address);
        self.everybody_is_there().await;
    }

    /// The members that the coordinator believes to be connected, and since when.
    pub async fn connected(&self, operator: &OperatorLine) -> Vec<(String, UnixMillis)> {
        let presence = operator.presence().await.unwrap();
        let entries = presence.members.iter();
        entries
            .map(|entry| (entry.id.name().to_string(), entry.since))
            .collect()
    }

    async fn everybody_is_there(&mut self) {
        let operator = self.operator().await;
        let running = self.members.iter().flatten().count();
        let mut members = std::mem::take(&mut self.members);
        until("the connection of every member", async || {
            for process in members.iter_mut().flatten() {
                assert_eq!(process.ended(), None, "a member has ended");
            }
            let there = self.connected(&operator).await.len();
            (there >= running).then_some(())
        })
        .await;
        self.members = members;
    }

    async fn start_coordinator(&mut self) -> SocketAddr {
        let party = self.domain.coordinator();
        let process = self.start_process(&self.binaries.coordinator, party).await;
        let file = party.folder.address();
        let mut process = process;
        let address = until("the coordinator's address", async || {
            assert_eq!(process.ended(), None, "the coordinator has ended");
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.trim_end().parse().ok()
        })
        .await;
        self.coordinator = Some(process);
        address
    }

    async fn start_member(&self, number: usize) -> Process {
        self.start_process(&self.binaries.participant, self.member(number))
            .await
    }

    async fn start_process(&self, program: &Path, party: &Party) -> Process {
        if self.is_traced {
            Process::start_traced(program, party, &self.trace(party)).await
        } else {
            Process::start(program, party)
        }
    }

    /// A fresh plan, signed by enough operators and accepted by nobody.
    #[must_use]
    pub fn plan(&self) -> Approved<Plan> {
        let digest = self.domain.authorities_digest();
        let plan = authority::plan(PlanTerms {
            network: NETWORK,
            purpose: "a test",
            threshold: self.threshold,
            roster: self.domain.roster().unwrap(),
            authorities: digest,
            rules: &authority::rules(&rule_terms()).unwrap(),
            expires: now().plus(PLAN_VALIDITY_MS),
        })
        .unwrap();
        let endorsed = authority::endorse(&plan, &self.operators()).unwrap();
        verify_plan(endorsed, self.domain.authorities(), digest).unwrap()
    }

    /// Accepts a plan on a member's own machine.
    pub async fn accept(&self, member: &Party, plan: &Approved<Plan>) {
        let socket = member.folder.control_socket();
        let mut line = LocalLine::connect(&socket).await.unwrap();
        let digest = PlanDigest::from_bytes(plan.digest());
        line.accept(plan.endorsed(), digest).await.unwrap();
    }

    fn operators(&self) -> Vec<IdentitySecret> {
        let quorum = self.domain.operator_quorum();
        quorum.iter().map(|party| party.secret().unwrap()).collect()
    }
}
