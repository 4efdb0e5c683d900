//! `firn demo`: everything once, for real, with separate processes on this machine. It decides what is
//! shown and what has to hold; each party decides for itself, exactly as it does in service.

mod archive;
mod binaries;
mod making;
mod narrator;
mod processes;
mod report;
mod requests;

use std::path::{Path, PathBuf};

use firn_protocol::{
    bitcoin::Child, bitcoin::psbt::PsbtVersion, ids::Threshold, messages::RequestSigned,
};
use tokio::signal::unix::{SignalKind, signal};

pub use report::{DemoReport, ReportedPrevout, ReportedTransaction, ReportedVerdict};

use self::{
    archive::Archive,
    binaries::Binaries,
    narrator::{Narrator, millis},
    processes::Processes,
    requests::{Cashier, Signed},
};
use crate::{
    authority::read_authorities,
    client::{OperatorLine, Peer, RequesterLine},
    clock::now,
    commands::demo::Arguments,
    domain::{Domain, DomainTerms, Party, files::claim_empty_folder},
    error::{Error, Exit},
    evidence, ledger,
    output::Output,
};

/// Who runs the demo's ceremony; two of the three have to sign.
const OPERATORS: [&str; 3] = ["ada", "ben", "cleo"];
const OPERATORS_NEEDED: u16 = 2;
/// The first two receiving addresses, and the next two.
const FIRST_COINS: [u32; 2] = [0, 1];
const SECOND_COINS: [u32; 2] = [2, 3];

/// Runs the demo to its end, or until somebody stops it. Its processes never outlive it.
///
/// # Errors
/// Whatever keeps it from going on; what merely does not hold is in the report.
pub(crate) fn run(arguments: &Arguments, output: Output) -> Result<DemoReport, Error> {
    let (members, threshold) = (arguments.participants, arguments.threshold);
    if Threshold::new(threshold, usize::from(members)).is_none() {
        return Err(Error::Usage {
            what: format!(
                "{threshold} of {members} cannot be: 2 to 32 members, at least 2 of them sign, and \
                 more than half, so that any two quorums share a member"
            ),
        });
    }
    let system = |source| Error::file("starting", "the demo")(source);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(system)?;
        // What is dropped here takes its processes with it.
        tokio::select! {
            report = perform(arguments, output) => report,
            _ = interrupt.recv() => Err(Error::Interrupted),
            _ = terminate.recv() => Err(Error::Interrupted),
        }
    })
}

async fn perform(arguments: &Arguments, output: Output) -> Result<DemoReport, Error> {
    let (members, threshold) = (arguments.participants, arguments.threshold);
    let narrator = Narrator::new(output);
    output.say(format_args!(
        "Firn: {members} participants and a coordinator on this machine, each a process of its own. \
         Any {threshold} of them sign; no machine ever holds the key."
    ));

    // Before anything takes time: a folder in use is refused at once.
    let folder = folder(arguments.dir.as_deref())?;
    claim_empty_folder(&folder)?;

    narrator.step("Programs");
    let binaries = Binaries::find(arguments.no_build, &narrator).await?;
    narrator.fact("participant", binaries.participant.display());
    narrator.fact("coordinator", binaries.coordinator.display());

    narrator.step("A throw-away trust domain");
    let domain = Domain::create(&folder, &terms(members)?, now())?;
    describe(&domain, &narrator);

    narrator.step("Processes");
    let (mut processes, address) = Processes::start(&binaries, &domain).await?;
    let participant_pids = processes.participants().iter().map(processes::Process::pid);
    let participant_pids: Vec<u32> = participant_pids.collect();
    let coordinator_pid = processes.coordinator().pid();
    let peer = Peer {
        address,
        holder: coordinator_of(&domain)?,
    };
    let operator = domain.operators().first().ok_or_else(nobody)?;
    let operator = OperatorLine::connect(operator, &peer).await?;
    making::everybody_connected(&operator, &domain, &mut processes, &narrator).await?;

    let mut verdicts = Verdicts::new(&narrator);
    let archive = Archive::create(&domain)?;
    let made = making::key(
        &domain,
        &operator,
        threshold,
        &archive,
        &narrator,
        &mut verdicts,
    )
    .await?;

    let requester = RequesterLine::connect(domain.requester(), &peer).await?;
    let cashier = Cashier::new(&domain, &made, &requester, &archive);
    let transactions = sign(&cashier, &mut processes, &narrator, &mut verdicts).await?;

    narrator.step("Stopping");
    drop((requester, operator));
    for (name, ended_well) in processes.stop().await {
        verdicts.hold(&format!("{name} stopped when it was asked to"), ended_well);
    }
    let participant_dirs = check_ledgers(&domain, &mut verdicts)?;
    verify_evidence(&domain, &archive, &mut verdicts)?;

    let report = DemoReport {
        key_id: made.active.certified().key_id().to_string(),
        group_key: made.active.certified().public().group_key().to_string(),
        descriptor: made.descriptor.clone(),
        address: made.address.clone(),
        threshold,
        transactions,
        participant_pids,
        participant_dirs,
        coordinator_pid,
        coordinator_dir: domain.coordinator().folder.path().to_owned(),
        dir: domain.path().to_owned(),
        authorities: domain.authorities_file(),
        evidence: archive.folder().path().to_owned(),
        verdicts: verdicts.all,
        elapsed_ms: millis(narrator.elapsed()),
    };
    archive.report(&report)?;
    conclude(&report, output);
    Ok(report)
}

/// Two transactions, one of them with a member killed, and the first request once more.
async fn sign(
    cashier: &Cashier<'_>,
    processes: &mut Processes,
    narrator: &Narrator,
    verdicts: &mut Verdicts<'_>,
) -> Result<Vec<ReportedTransaction>, Error> {
    narrator.step("A transaction with two inputs of the key, a payment and change");
    let first = cashier.payment(FIRST_COINS, 0, PsbtVersion::V2)?;
    let signed = cashier.sign(&first, "1").await?;
    signed.judge(narrator, verdicts);
    let mut transactions = vec![signed.reported()];
    let victim = signed.signers().last().cloned().ok_or_else(nobody)?;

    // Where nobody can be spared, the stored answer needs everybody too.
    if !cashier.can_lose_one() {
        replay(cashier, &first, &signed, narrator, verdicts).await?;
    }
    narrator.step(format_args!("One participant is killed: {victim}"));
    if let Some(process) = processes.take(&victim) {
        narrator.fact("SIGKILL", format_args!("process {}", process.pid()));
        process.kill().await?;
        narrator.line("the coordinator asks again without it once its time for an answer is over");
    }
    let change = Child::new(1, 1)?.index();
    let second = cashier.payment(SECOND_COINS, change, PsbtVersion::V0)?;
    if cashier.can_lose_one() {
        let signed_second = cashier.sign(&second, "2").await?;
        signed_second.judge(narrator, verdicts);
        let without = !signed_second.signers().contains(&victim);
        verdicts.hold("the others signed without the one that was killed", without);
        transactions.push(signed_second.reported());
        replay(cashier, &first, &signed, narrator, verdicts).await?;
    } else {
        let refused = match cashier.sign(&second, "2").await {
            Err(error) if error.exit() == Exit::TryAgain => {
                narrator.fact("refused", &error);
                true
            }
            Err(error) => return Err(error),
            Ok(_) => false,
        };
        verdicts.hold("too few members cannot sign", refused);
    }
    Ok(transactions)
}

/// The same request again: the same answer, without another signature being made.
async fn replay(
    cashier: &Cashier<'_>,
    request: &requests::Request,
    before: &Signed,
    narrator: &Narrator,
    verdicts: &mut Verdicts<'_>,
) -> Result<(), Error> {
    narrator.step("The first request once more");
    let again = cashier.sign(request, "1-again").await?;
    let (answer, first): (&RequestSigned, _) = (again.answer(), before.answer());
    narrator.fact("session", answer.session);
    narrator.fact("elapsed", format_args!("{} ms", again.elapsed_ms()));
    let same = answer.signatures == first.signatures && answer.session == first.session;
    verdicts.hold("the same request gave the very same signatures", same);
    let is_stored = again.is_stored();
    verdicts.hold("no new signature was made for it", is_stored);
    Ok(())
}

/// What has to hold, told as it is found out.
pub(super) struct Verdicts<'a> {
    narrator: &'a Narrator,
    all: Vec<ReportedVerdict>,
}

impl<'a> Verdicts<'a> {
    const fn new(narrator: &'a Narrator) -> Self {
        Self {
            narrator,
            all: Vec::new(),
        }
    }

    pub(super) fn hold(&mut self, name: &str, holds: bool) {
        let word = if holds { "holds" } else { "DOES NOT HOLD" };
        self.narrator.fact(word, name);
        self.all.push(ReportedVerdict {
            name: name.to_owned(),
            holds,
        });
    }
}

fn terms(members: u16) -> Result<DomainTerms<'static>, Error> {
    Ok(DomainTerms {
        trust_domain: "demo.firn".parse()?,
        operators: &OPERATORS,
        operators_needed: OPERATORS_NEEDED,
        requester: "treasury",
        coordinator: "relay",
        members,
    })
}

fn folder(given: Option<&Path>) -> Result<PathBuf, Error> {
    match given {
        Some(folder) => Ok(folder.to_owned()),
        // Kept: whoever wants to verify what the demo says finds it there.
        None => tempfile::Builder::new()
            .prefix("firn-demo-")
            .tempdir()
            .map(tempfile::TempDir::keep)
            .map_err(Error::file("making", std::env::temp_dir())),
    }
}

fn describe(domain: &Domain, narrator: &Narrator) {
    let authorities = domain.authorities();
    let names: Vec<&str> = domain.operators().iter().map(Party::name).collect();
    narrator.fact("folder", domain.path().display());
    narrator.fact("trust domain", &authorities.trust_domain);
    narrator.fact(
        "operators",
        format_args!("{}; {OPERATORS_NEEDED} of them decide", names.join(", ")),
    );
    narrator.fact("requester", domain.requester().name());
    narrator.fact("coordinator", domain.coordinator().name());
    let names: Vec<&str> = domain.members().iter().map(Party::name).collect();
    narrator.fact("members", names.join(", "));
    narrator.fact("authorities", domain.authorities_digest());
}

fn coordinator_of(domain: &Domain) -> Result<firn_protocol::documents::KeyHolder, Error> {
    let holder = domain.authorities().coordinators.first().cloned();
    holder.ok_or_else(nobody)
}

fn check_ledgers(domain: &Domain, verdicts: &mut Verdicts<'_>) -> Result<Vec<PathBuf>, Error> {
    let mut folders = Vec::new();
    for member in domain.members() {
        let checked = ledger::check(member.folder.path())?;
        let size = checked.report.head.size.leaves();
        let name = format!("the ledger of {} is sound ({size} records)", member.name());
        verdicts.hold(&name, checked.report.is_sound() && size > 0);
        folders.push(member.folder.path().to_owned());
    }
    Ok(folders)
}

/// The folder as a stranger checks it, from its files and the Authorities alone.
fn verify_evidence(
    domain: &Domain,
    archive: &Archive,
    verdicts: &mut Verdicts<'_>,
) -> Result<(), Error> {
    let authorities = read_authorities(&domain.authorities_file())?;
    let meant = Some(domain.authorities_digest());
    let endorsed = authorities.endorsed().clone();
    let verification = evidence::verify(archive.folder(), endorsed, meant)?;
    for check in verification.failed() {
        let name = format!("{}: {}: {}", check.file, check.check, check.detail);
        verdicts.hold(&name, false);
    }
    let checks = verification.checks.len();
    let name = format!("the evidence proves itself to a stranger ({checks} checks)");
    verdicts.hold(&name, verification.holds());
    Ok(())
}

fn conclude(report: &DemoReport, output: Output) {
    output.say("");
    let held = report.verdicts.iter().filter(|verdict| verdict.holds);
    output.say(format_args!(
        "{} of {} verdicts hold. Everything is in {}",
        held.count(),
        report.verdicts.len(),
        report.dir.display()
    ));
    if let Some(folder) = report.participant_dirs.first() {
        output.say(format_args!(
            "Look further: firn ledger check {}",
            folder.display()
        ));
        output.say(format_args!(
            "              firn verify {} --authorities {}",
            report.evidence.display(),
            report.authorities.display()
        ));
    }
}

fn nobody() -> Error {
    Error::Usage {
        what: "nobody is there for this".to_owned(),
    }
}
