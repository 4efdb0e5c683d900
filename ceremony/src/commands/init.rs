//! `firn init`: founds a trust domain in a folder. It decides what is made and what is brought, and says
//! what is still missing.

use std::path::{Path, PathBuf};

use clap::Args;
use firn_client::Coordinator;
use firn_protocol::{
    documents::Authorities,
    keys::IdentityKey,
    names::{Name, Role, SpiffeId, TrustDomain},
};
use serde::Serialize;

use super::reports::{Fingerprint, Signatures, split};
use crate::{
    authority::signed_so_far,
    clock::now,
    confirm,
    domain::{
        AUTHORITIES, CA, DESCRIPTION, Enrolled, Founded, Founding, GRANT_KEY, POLICY_KEY, Seat,
        files::read_bounded,
    },
    error::{Error, Exit},
    output::Output,
};

/// Bytes of a file of roots.
const ROOTS_LIMIT: usize = 256 << 10;

/// Options of `firn init`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn init domain --trust-domain custody.example \\\n    \
                  --operator ada --operator ben --operator cleo --operators-needed 2 \\\n    \
                  --requester treasury --coordinator relay=127.0.0.1:7600\n\n\
                  With your own CA and keys that were made elsewhere (`firn enroll --trust-domain`):\n  \
                  firn init domain --trust-domain custody.example --operators-needed 1 \\\n    \
                  --operator ada=ada/enrollment.cbor --requester treasury=treasury/enrollment.cbor \\\n    \
                  --coordinator relay=relay.custody.example:7600=relay/enrollment.cbor \\\n    \
                  --grant-authority 9f…  --policy-authority 41…  --roots ca.pem"
)]
pub(crate) struct Arguments {
    /// The folder to make; it must be new or empty.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The trust domain, as it stands in every name: spiffe://<trust domain>/<role>/<name>.
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) trust_domain: TrustDomain,
    /// Who runs ceremonies: a name, or a name and the enrollment of keys made elsewhere.
    #[arg(long = "operator", value_name = "NAME[=ENROLLMENT]", required = true)]
    pub(crate) operators: Vec<String>,
    /// How many operators a plan or an activation needs.
    #[arg(long, value_name = "K")]
    pub(crate) operators_needed: u16,
    /// Who may ask for signatures.
    #[arg(long = "requester", value_name = "NAME[=ENROLLMENT]", required = true)]
    pub(crate) requesters: Vec<String>,
    /// Who carries messages, and where it is reached.
    #[arg(
        long = "coordinator",
        value_name = "NAME=HOST:PORT[=ENROLLMENT]",
        required = true
    )]
    pub(crate) coordinators: Vec<String>,
    /// The Ed25519 public key that signs grants, where it was made elsewhere.
    #[arg(long, value_name = "HEX", value_parser = identity_key)]
    pub(crate) grant_authority: Option<IdentityKey>,
    /// The Ed25519 public key that signs policies, where it was made elsewhere.
    #[arg(long, value_name = "HEX", value_parser = identity_key)]
    pub(crate) policy_authority: Option<IdentityKey>,
    /// The roots of your own CA, PEM: no CA is made then, and certificates are yours to issue.
    #[arg(long, value_name = "FILE")]
    pub(crate) roots: Option<PathBuf>,
}

fn identity_key(text: &str) -> Result<IdentityKey, String> {
    IdentityKey::from_hex(text).ok_or_else(|| "a public key is 64 hexadecimal digits".to_owned())
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    folder: PathBuf,
    trust_domain: String,
    authorities: PathBuf,
    description: PathBuf,
    fingerprint: Fingerprint,
    #[serde(flatten)]
    signatures: Signatures,
    ca: Option<PathBuf>,
    /// The keys that sign grants and policies; null where they were made elsewhere.
    grant_authority: Option<PathBuf>,
    policy_authority: Option<PathBuf>,
    made: Vec<MadeParty>,
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
struct MadeParty {
    name: SpiffeId,
    folder: PathBuf,
    /// What its CA signs, where no CA is made here.
    request: Option<PathBuf>,
}

/// Runs `firn init`.
pub(crate) fn run(arguments: &Arguments, output: &Output) -> Result<Exit, Error> {
    let (report, digest) = perform(arguments)?;
    if !output.is_json() {
        show(&report, &digest, *output);
    }
    output.object(&report)?;
    Ok(Exit::Done)
}

pub(crate) fn perform(arguments: &Arguments) -> Result<(Report, [u8; 32]), Error> {
    let mut coordinators = Vec::new();
    let mut seats = Vec::new();
    for argument in &arguments.coordinators {
        let (coordinator, seat) = coordinator(argument, &arguments.trust_domain)?;
        coordinators.push(coordinator);
        seats.push(seat);
    }
    let roots_pem = arguments.roots.as_deref().map(read_roots).transpose()?;
    let founding = Founding {
        trust_domain: arguments.trust_domain.clone(),
        operators: all_seats(&arguments.operators)?,
        operators_needed: arguments.operators_needed,
        requesters: all_seats(&arguments.requesters)?,
        coordinators: seats,
        grant_authority: arguments.grant_authority,
        policy_authority: arguments.policy_authority,
        roots_pem,
    };
    let now = now();
    let founded = founding.carry_out(&arguments.dir, now)?;
    let description = founded.path().join(DESCRIPTION);
    let draft = founded.describe(coordinators)?;
    draft.write(&description)?;
    let (authorities, digest) = founded.endorsed().read::<Authorities>()?;
    let operators = &authorities.operators;
    let signed = signed_so_far::<Authorities>(
        founded.endorsed(),
        &operators.identities(),
        "founding the trust domain",
    )?;
    let signatures = Signatures::of(operators, &signed);
    let complete = (signatures.missing == 0)
        .then(|| draft.complete())
        .transpose()?;
    let mut made = Vec::new();
    for folder in founded.made() {
        folder.trust(founded.roots_pem())?;
        founded.certify(folder, now)?;
        if let Some(description) = &complete {
            folder.join(description)?;
        }
        let files = folder.folder();
        made.push(MadeParty {
            name: folder.enrolled().enrollment().name.clone(),
            folder: files.path().to_owned(),
            request: (!founded.has_ca()).then(|| files.request()),
        });
    }
    let report = Report {
        trust_domain: arguments.trust_domain.to_string(),
        authorities: founded.path().join(AUTHORITIES),
        fingerprint: Fingerprint::of(&digest),
        ca: founded.has_ca().then(|| founded.path().join(CA)),
        grant_authority: made_key(arguments.grant_authority, &founded, GRANT_KEY),
        policy_authority: made_key(arguments.policy_authority, &founded, POLICY_KEY),
        next: next_steps(&signatures, founded.has_ca(), &made, &description),
        folder: founded.path().to_owned(),
        description,
        signatures,
        made,
    };
    Ok((report, digest))
}

fn made_key(brought: Option<IdentityKey>, founded: &Founded, place: &str) -> Option<PathBuf> {
    brought.is_none().then(|| founded.path().join(place))
}

fn next_steps(
    signatures: &Signatures,
    has_ca: bool,
    made: &[MadeParty],
    description: &Path,
) -> Vec<String> {
    let file = description.display();
    let mut steps = Vec::new();
    if signatures.missing > 0 {
        steps.push(format!(
            "have the missing operators sign the Authorities: firn authorities sign {file}"
        ));
        for party in made {
            let folder = party.folder.display();
            steps.push(format!(
                "then put them in place: firn enroll {folder} --domain {file}"
            ));
        }
    }
    if !has_ca {
        for party in made {
            let folder = party.folder.display();
            steps.push(format!(
                "have your CA sign {folder}/tls.csr, then: firn enroll {folder} --certificate FILE"
            ));
        }
    }
    steps.push(format!(
        "carry {file} to every machine, and there: firn enroll DIR --domain {DESCRIPTION}"
    ));
    steps
}

fn show(report: &Report, digest: &[u8; 32], output: Output) {
    output.fact("trust domain", &report.trust_domain);
    match &report.ca {
        Some(ca) => output.fact("CA", format_args!("{} (for development)", ca.display())),
        None => output.fact("CA", "your own"),
    }
    for party in &report.made {
        output.fact(
            party.name.role(),
            format_args!("{}: {}", party.name.name(), party.folder.display()),
        );
    }
    for (kind, key) in [
        ("grants", &report.grant_authority),
        ("policies", &report.policy_authority),
    ] {
        match key {
            Some(key) => output.fact(kind, format_args!("signed with {}", key.display())),
            None => output.fact(kind, "signed with your own key"),
        }
    }
    output.fact("authorities", report.authorities.display());
    output.fact("for machines", report.description.display());
    report.signatures.say(output);
    output.say("");
    confirm::show("the Authorities", digest, output);
    output.say("");
    output.say("Next:");
    for step in &report.next {
        output.say(format_args!("  {step}"));
    }
}

fn all_seats(arguments: &[String]) -> Result<Vec<Seat>, Error> {
    let seats = arguments.iter().map(|argument| {
        let (name, enrollment) = split(argument);
        seat(name, enrollment)
    });
    seats.collect()
}

fn seat(name: &str, enrollment: Option<&str>) -> Result<Seat, Error> {
    let name: Name = name.parse()?;
    Ok(match enrollment {
        None => Seat::Made(name),
        Some(path) => Seat::Brought(name, Box::new(Enrolled::read(Path::new(path))?)),
    })
}

fn coordinator(argument: &str, domain: &TrustDomain) -> Result<(Coordinator, Seat), Error> {
    let (name, rest) = split(argument);
    let wrong = |why: &dyn std::fmt::Display| Error::Usage {
        what: format!("--coordinator {argument}: {why}"),
    };
    let rest = rest.ok_or_else(|| wrong(&"where it is reached is missing: NAME=HOST:PORT"))?;
    let (address, enrollment) = split(rest);
    let coordinator = Coordinator {
        name: SpiffeId::new(domain.clone(), Role::Coordinator, name.parse()?),
        address: address.parse().map_err(|error| wrong(&error))?,
    };
    Ok((coordinator, seat(name, enrollment)?))
}

fn read_roots(path: &Path) -> Result<String, Error> {
    const WHAT: &str = "certificates of a CA in PEM";
    let bad = || Error::BadFile {
        path: path.to_owned(),
        what: WHAT,
    };
    let text = String::from_utf8(read_bounded(path, ROOTS_LIMIT, WHAT)?).map_err(|_| bad())?;
    // Only to find out before anything is made; the trust domain plays no part in it.
    let domain = "any".parse()?;
    firn_transport::Trust::from_pem(domain, text.as_bytes()).map_err(|_| bad())?;
    Ok(text)
}
