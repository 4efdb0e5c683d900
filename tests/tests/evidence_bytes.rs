//! The evidence folder, byte by byte: whatever is changed in it is found, and named with its file and
//! the check that does not hold any more.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use firn_ceremony::evidence::{
    ACKNOWLEDGEMENTS, ACTIVATION, CEREMONY, FILES, Folder, PLAN, POLICY, REQUESTS, Verification,
    verify,
};
use firn_protocol::{
    codec::{self, List, Maybe},
    documents::{Ceremony, Outcome},
    envelope::Envelope,
    ids::{AuthoritiesDigest, MessageDigest},
    messages::{Acknowledgement, CeremonyRecord, RequestSigned},
};
use firn_tests::samples::{World, member, standing};

/// What a folder holds, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// How many positions are changed, spread over all files; the whole of it takes minutes, and is done
/// where the variable is set.
const POSITIONS: usize = 3_000;
const EVERY_BYTE: &str = "FIRN_EVERY_BYTE";

fn encoded<T: serde::Serialize>(value: &T) -> Vec<u8> {
    codec::encode(value).unwrap()
}

/// The folder of a real ceremony and a real signature.
fn files() -> Files {
    let world = World::fixed();
    let dealing = &world.dealing;
    let list = |count: u16| (1..=count).map(member);
    let record = CeremonyRecord {
        header: dealing.header.envelope().clone(),
        round1: dealing.round1_set().messages,
        manifests: List::new(dealing.manifests()).unwrap(),
        deliveries: List::new(list(3).map(|id| dealing.delivery(id)).collect()).unwrap(),
        certificates: world.documents.certificates.clone(),
        proofs: List::new(world.proofs.iter().map(|p| p.proof_record()).collect()).unwrap(),
    };
    let activation = MessageDigest::from_bytes(*world.activation_digest().as_bytes());
    let acknowledgements: Vec<Envelope<Acknowledgement>> = list(3)
        .map(|id| {
            world.people.member(id).sign(&Acknowledgement {
                member: id,
                what: activation,
                standing: standing(&world.people, id),
            })
        })
        .collect();
    let answer = RequestSigned {
        session: world.request.id(),
        signatures: List::new(world.request.signatures.clone()).unwrap(),
        receipts: List::new(list(2).zip(world.receipts.clone()).collect()).unwrap(),
        evidence: Maybe(Some(world.request.signing_record())),
    };
    let request = (&world.open.intent, &world.open.grant, &answer);
    let name = format!("{REQUESTS}/{}.cbor", world.opening.grant.request_id);
    Files::from([
        (PLAN.to_owned(), encoded(&world.documents.plan)),
        (POLICY.to_owned(), encoded(&world.documents.policy)),
        (CEREMONY.to_owned(), encoded(&record)),
        (ACTIVATION.to_owned(), encoded(&world.documents.activation)),
        (ACKNOWLEDGEMENTS.to_owned(), encoded(&acknowledgements)),
        (name, encoded(&request)),
    ])
}

fn write(folder: &Path, files: &Files) {
    fs::create_dir_all(folder.join(REQUESTS)).unwrap();
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

fn judge(folder: &Path) -> Verification {
    let world = World::fixed();
    let meant = Some(world.authorities_digest);
    let authorities = world.authorities_endorsed.clone();
    verify(&Folder::at(folder), authorities, meant).unwrap()
}

/// The files that a refusal names, each with a check that has words.
fn refused(verification: &Verification) -> BTreeSet<String> {
    assert!(!verification.holds());
    verification
        .failed()
        .map(|check| {
            assert!(
                !check.check.is_empty() && !check.detail.is_empty(),
                "{check:?}"
            );
            check.file.clone()
        })
        .collect()
}

struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
    files: Files,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let files = files();
        write(&path, &files);
        Self {
            _folder: folder,
            path,
            files,
        }
    }

    /// Judges the folder with these bytes in a file, and puts the file back.
    fn with(&self, name: &str, bytes: &[u8]) -> Verification {
        let path = self.path.join(name);
        fs::write(&path, bytes).unwrap();
        let verification = judge(&self.path);
        fs::write(&path, &self.files[name]).unwrap();
        verification
    }

    fn request(&self) -> String {
        let mut names = self.files.keys();
        names
            .find(|name| name.starts_with(REQUESTS))
            .unwrap()
            .clone()
    }
}

#[test]
fn an_honest_folder_holds_and_names_every_check() {
    let scratch = Scratch::new();
    let verification = judge(&scratch.path);
    for check in &verification.checks {
        assert!(check.holds, "{check:?}");
    }
    assert!(verification.holds());
    let named: BTreeSet<_> = verification.checks.iter().map(|c| c.file.clone()).collect();
    for name in scratch.files.keys() {
        assert!(named.contains(name), "{name} was not checked");
    }
    let in_force = verification.in_force.unwrap();
    assert!(in_force.is_in_force());
    assert_eq!(in_force.would_have_to_lie(), 2);
}

#[test]
fn refuses_every_single_byte_change() {
    let files = files();
    let total: usize = files.values().map(Vec::len).sum();
    let every = std::env::var_os(EVERY_BYTE).is_some();
    let step = if every { 1 } else { (total / POSITIONS).max(1) };
    let mut changes = Vec::new();
    for (name, bytes) in &files {
        let ends = [0, bytes.len() - 1];
        for position in (0..bytes.len()).filter(|p| p % step == 0 || ends.contains(p)) {
            // One bit, which is another one at each place, so that all eight come up.
            changes.push((name.clone(), position, 1_u8 << ((position / step) % 8)));
        }
    }
    assert!(changes.len() >= POSITIONS.min(total), "{}", changes.len());
    let half = changes.len() / 2;
    std::thread::scope(|scope| {
        for part in [&changes[..half], &changes[half..]] {
            scope.spawn(move || {
                let scratch = Scratch::new();
                for (name, position, bit) in part {
                    let mut bytes = scratch.files[name].clone();
                    bytes[*position] ^= bit;
                    let named = refused(&scratch.with(name, &bytes));
                    assert!(named.contains(name), "{name} at {position}: {named:?}");
                }
                assert!(judge(&scratch.path).holds());
            });
        }
    });
}

#[test]
fn refuses_bytes_too_few_and_too_many() {
    let scratch = Scratch::new();
    for (name, bytes) in &scratch.files {
        let added = [&bytes[..], &[0]].concat();
        let doubled = [&bytes[..], &bytes[..]].concat();
        let mut damaged = vec![added, doubled, Vec::new()];
        damaged.extend([1, bytes.len() / 2, bytes.len() - 1].map(|end| bytes[..end].to_vec()));
        for bytes in damaged {
            assert!(
                refused(&scratch.with(name, &bytes)).contains(name),
                "{name}"
            );
        }
    }
}

#[test]
fn refuses_files_in_each_other_s_place() {
    let scratch = Scratch::new();
    for name in scratch.files.keys() {
        for (other, bytes) in scratch.files.iter().filter(|(other, _)| *other != name) {
            let named = refused(&scratch.with(name, bytes));
            assert!(named.contains(name), "{other} as {name}: {named:?}");
        }
    }
}

#[test]
fn refuses_a_file_that_is_missing_or_one_too_many() {
    let scratch = Scratch::new();
    for name in FILES {
        let path = scratch.path.join(name);
        fs::remove_file(&path).unwrap();
        assert!(refused(&judge(&scratch.path)).contains(name));
        // A link to the very bytes is not the file.
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        fs::write(elsewhere.path(), &scratch.files[name]).unwrap();
        symlink(elsewhere.path(), &path).unwrap();
        assert!(refused(&judge(&scratch.path)).contains(name));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(refused(&judge(&scratch.path)).contains(name));
        fs::remove_dir(&path).unwrap();
        fs::write(&path, &scratch.files[name]).unwrap();
    }
    let request = scratch.request();
    let digits = request.strip_prefix("requests/").unwrap();
    for extra in [
        "notes.txt",
        ".hidden",
        "plan.cbor.bak",
        "requests/notes.txt",
        "requests/00.cbor",
        &format!("requests/{}", digits.to_uppercase()),
        &digits.replace(".cbor", ".CBOR"),
    ] {
        let path = scratch.path.join(extra);
        fs::write(&path, &scratch.files[&request]).unwrap();
        assert!(refused(&judge(&scratch.path)).contains(extra), "{extra}");
        fs::remove_file(&path).unwrap();
    }
    for extra in ["more", "requests/more"] {
        let path = scratch.path.join(extra);
        fs::create_dir(&path).unwrap();
        assert!(refused(&judge(&scratch.path)).contains(extra), "{extra}");
        fs::remove_dir(&path).unwrap();
    }
    assert!(judge(&scratch.path).holds());
}

#[test]
fn refuses_a_request_under_another_name() {
    let scratch = Scratch::new();
    let other = format!("{REQUESTS}/{}.cbor", "ab".repeat(32));
    fs::rename(
        scratch.path.join(scratch.request()),
        scratch.path.join(&other),
    )
    .unwrap();
    assert!(refused(&judge(&scratch.path)).contains(&other));
}

#[test]
fn refuses_other_authorities_than_were_meant() {
    let scratch = Scratch::new();
    let world = World::fixed();
    let folder = Folder::at(&scratch.path);
    let other = Some(AuthoritiesDigest::from_bytes([7; 32]));
    let judged = verify(&folder, world.authorities_endorsed.clone(), other).unwrap();
    assert_eq!(refused(&judged), BTreeSet::from(["authorities".to_owned()]));
    // Another document that the same operators signed.
    let judged = verify(&folder, world.plan_endorsed.clone(), None).unwrap();
    assert!(refused(&judged).contains("authorities"));
}

/// What has several items in an order, or may be left out, without any signature over all of it.
#[test]
fn refuses_lists_that_are_bent_as_a_whole() {
    let scratch = Scratch::new();
    let record: CeremonyRecord = codec::decode(&scratch.files[CEREMONY], 1 << 20).unwrap();
    let bent = |bend: &dyn Fn(&mut CeremonyRecord)| {
        let mut record = record.clone();
        bend(&mut record);
        let named = refused(&scratch.with(CEREMONY, &encoded(&record)));
        assert!(named.contains(CEREMONY), "{named:?}");
    };
    fn reversed<T: Clone, const N: usize>(list: &List<T, N>) -> List<T, N> {
        List::new(list.iter().rev().cloned().collect()).unwrap()
    }
    fn shorter<T: Clone, const N: usize>(list: &List<T, N>) -> List<T, N> {
        List::new(list[..list.len() - 1].to_vec()).unwrap()
    }
    fn twice<T: Clone, const N: usize>(list: &List<T, N>) -> List<T, N> {
        let mut items = list.to_vec();
        items.push(items[0].clone());
        List::new(items).unwrap()
    }
    bent(&|record| record.proofs = reversed(&record.proofs));
    // Two proofs of three cover every member, and are not every pair.
    bent(&|record| record.proofs = shorter(&record.proofs));
    bent(&|record| record.proofs = twice(&record.proofs));
    bent(&|record| record.proofs = List::empty());
    bent(&|record| record.deliveries = reversed(&record.deliveries));
    bent(&|record| record.deliveries = List::empty());
    bent(&|record| record.certificates = reversed(&record.certificates));
    bent(&|record| record.manifests = reversed(&record.manifests));
    bent(&|record| record.round1 = reversed(&record.round1));

    type Words = List<Envelope<Acknowledgement>, 32>;
    let words: Words = codec::decode(&scratch.files[ACKNOWLEDGEMENTS], 1 << 20).unwrap();
    for list in [reversed(&words), twice(&words), List::empty()] {
        assert!(
            refused(&scratch.with(ACKNOWLEDGEMENTS, &encoded(&list))).contains(ACKNOWLEDGEMENTS)
        );
    }
    // Without one member it is still in force.
    let judged = scratch.with(ACKNOWLEDGEMENTS, &encoded(&shorter(&words)));
    assert!(judged.holds());
    assert_eq!(judged.in_force.unwrap().would_have_to_lie(), 1);

    type Request = firn_ceremony::evidence::RequestEvidence;
    let name = scratch.request();
    let request: Request = codec::decode(&scratch.files[&name], 1 << 22).unwrap();
    let bent = |bend: &dyn Fn(&mut RequestSigned)| {
        let (intent, grant, mut answer) = request.clone();
        bend(&mut answer);
        let bytes = encoded(&(intent, grant, answer));
        assert!(refused(&scratch.with(&name, &bytes)).contains(&name));
    };
    bent(&|answer| answer.receipts = reversed(&answer.receipts));
    bent(&|answer| answer.receipts = List::empty());
    bent(&|answer| answer.signatures = reversed(&answer.signatures));
    bent(&|answer| answer.signatures = shorter(&answer.signatures));
    bent(&|answer| answer.session = World::fixed().proofs[0].id());
    bent(&|answer| {
        let mut record = answer.evidence.0.clone().unwrap();
        record.commitments = reversed(&record.commitments);
        answer.evidence = Maybe(Some(record));
    });
    let world = World::fixed();
    assert!(matches!(world.plan.ceremony, Ceremony::Dkg(_)));
    let receipt = world.receipts[0]
        .clone()
        .verify(&world.people.member(member(1)).key());
    assert!(matches!(receipt.unwrap().outcome, Outcome::Completed(_)));
}
