//! Three members of a real key, and every way in which one of them may not be ready.

use firn_client::Key;
use firn_protocol::{
    codec::{List, Maybe, Text},
    documents::Checkpoint,
    envelope::Envelope,
    ids::{AuthoritiesDigest, BuildDigest, Epoch, Nonce, PolicyVersion, ShareVersion, UnixMillis},
    keys::IdentitySecret,
    merkle::{MerkleRoot, TreeSize},
    messages::{KeyStatus, MemberReport, MemberStatus, ShareStage, StatusReport},
    reject::Reject,
};

use super::{Report, named_keys};
use crate::{
    clock::fresh_identity,
    evidence::tests::world::{World, world},
};

const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);
const NONCE: Nonce = Nonce::from_bytes([9; 32]);
const DAY: u64 = 86_400_000;

/// What is said of one member, before it is signed.
struct Said {
    report: MemberReport,
    word: Option<MemberStatus>,
    signer: IdentitySecret,
}

fn honest(world: &World) -> Vec<Said> {
    let active = &world.active;
    let roster = &active.certified().plan().roster;
    roster
        .iter()
        .zip(&world.members)
        .map(|(entry, secret)| {
            let checkpoint = Checkpoint {
                size: TreeSize::new(7),
                root: MerkleRoot::empty(),
                time: NOW,
            };
            let signer = IdentitySecret::from_seed(&secret.seed());
            Said {
                report: MemberReport {
                    id: entry.tls_name.clone(),
                    connected: Maybe(Some(NOW)),
                    last_seen: Maybe(None),
                    status: Maybe(None),
                },
                word: Some(MemberStatus {
                    nonce: NONCE,
                    name: entry.tls_name.clone(),
                    software: Text::new("firn").unwrap(),
                    build: BuildDigest::from_bytes([1; 32]),
                    authorities: AuthoritiesDigest::from_bytes([2; 32]),
                    checkpoint: Envelope::sign(&checkpoint, &signer).unwrap(),
                    stopped: Maybe(None),
                    certificate_expires: NOW.plus(90 * DAY),
                    accepted: List::empty(),
                    keys: List::new(vec![KeyStatus {
                        key_id: active.certified().key_id(),
                        share_version: ShareVersion::new(1),
                        stage: ShareStage::Active,
                        activation: Maybe(Some(active.activation_digest())),
                        policy_version: Maybe(Some(PolicyVersion::new(1))),
                        epoch: Maybe(Some(Epoch::new(1))),
                        owner: Maybe(None),
                    }])
                    .unwrap(),
                    time: NOW,
                }),
                signer,
            }
        })
        .collect()
}

fn report(said: Vec<Said>) -> StatusReport {
    let members = said.into_iter().map(|said| {
        let word = said
            .word
            .map(|word| Envelope::sign(&word, &said.signer).unwrap());
        MemberReport {
            status: Maybe(word),
            ..said.report
        }
    });
    StatusReport {
        coordinator: "spiffe://test.firn/coordinator/relay".parse().unwrap(),
        software: Text::new("firn").unwrap(),
        since: NOW,
        members: List::new(members.collect()).unwrap(),
    }
}

fn view(world: &World, bend: impl FnOnce(&mut Vec<Said>)) -> Report {
    let mut said = honest(world);
    bend(&mut said);
    let key = Key::of(world.active.clone()).unwrap();
    Report::of(&report(said), &NONCE, &[key], Vec::new(), NOW)
}

fn key_of(said: &mut Said) -> KeyStatus {
    said.word.as_ref().unwrap().keys[0].clone()
}

fn put(said: &mut Said, key: KeyStatus) {
    said.word.as_mut().unwrap().keys = List::new(vec![key]).unwrap();
}

#[test]
fn three_honest_members_can_sign() {
    let view = view(&world(), |_| {});
    assert!(view.can_sign());
    let key = &view.keys[0];
    assert_eq!((key.threshold, key.members), (2, 3));
    assert_eq!((key.tolerated_liars, key.tolerated_thefts), (0, 1));
    assert_eq!((key.ready.len(), key.not_ready.len()), (3, 0));
    assert_eq!(key.epochs.len(), 1);
    assert!(
        view.members
            .iter()
            .all(|member| member.is_verified && member.warnings.is_empty())
    );
}

#[test]
fn whoever_would_not_sign_is_named_with_the_reason() {
    type Bend = fn(&mut Said);
    let table: [(&str, Bend); 10] = [
        ("is not connected", |said| {
            said.report.connected = Maybe(None);
            said.word = None;
        }),
        ("does not answer", |said| said.word = None),
        ("does not verify", |said| {
            said.signer = fresh_identity().unwrap()
        }),
        ("does not verify", |said| {
            said.word.as_mut().unwrap().nonce = Nonce::from_bytes([8; 32]);
        }),
        ("has stopped", |said| {
            said.word.as_mut().unwrap().stopped = Maybe(Some(Reject::Frozen));
        }),
        ("1 min 1 s behind", |said| {
            said.word.as_mut().unwrap().time = UnixMillis::new(NOW.value() - 61_000);
        }),
        ("has no share of it", |said| {
            said.word.as_mut().unwrap().keys = List::empty()
        }),
        ("another version", |said| {
            let mut key = key_of(said);
            key.share_version = ShareVersion::new(2);
            put(said, key);
        }),
        ("has not got the activation", |said| {
            let mut key = key_of(said);
            key.stage = ShareStage::Certified;
            put(said, key);
        }),
        ("another activation", |said| {
            let mut key = key_of(said);
            key.activation = Maybe(None);
            put(said, key);
        }),
    ];
    let world = world();
    for (words, bend) in table {
        let view_of = |count: usize| view(&world, |said| said[..count].iter_mut().for_each(bend));
        let one = view_of(1);
        assert!(one.can_sign(), "{words}: two are left");
        assert_eq!(one.keys[0].not_ready.len(), 1, "{words}");
        assert!(
            one.keys[0].not_ready[0].contains(words),
            "{:?}",
            one.keys[0].not_ready
        );
        assert!(!view_of(2).can_sign(), "{words}: one is left");
    }
}

#[test]
fn members_that_differ_about_the_epoch_are_shown_by_what_they_say() {
    let view = view(&world(), |said| {
        let mut key = key_of(&mut said[2]);
        key.epoch = Maybe(Some(Epoch::new(4)));
        key.owner = Maybe(Some("spiffe://test.firn/requester/desk".parse().unwrap()));
        put(&mut said[2], key);
    });
    let epochs = &view.keys[0].epochs;
    assert_eq!(epochs.len(), 2);
    assert_eq!((epochs[0].epoch, epochs[0].members.len()), (Some(4), 1));
    assert_eq!((epochs[1].epoch, epochs[1].members.len()), (Some(1), 2));
}

#[test]
fn a_certificate_that_ends_soon_and_a_member_that_nobody_has_seen_are_warned_of() {
    let view = view(&world(), |said| {
        said[0].word.as_mut().unwrap().certificate_expires = NOW.plus(6 * DAY);
        said.remove(2);
    });
    assert!(view.members[0].warnings[0].contains("renew"));
    assert!(view.members[2].warnings[0].contains("not seen"));
    assert_eq!(view.members.len(), 3);
}

#[test]
fn a_word_without_a_roster_is_shown_and_proves_nothing() {
    let world = world();
    let report = report(honest(&world));
    assert_eq!(named_keys(&report).len(), 1);
    let view = Report::of(&report, &NONCE, &[], Vec::new(), NOW);
    assert!(
        view.members
            .iter()
            .all(|member| !member.is_verified && member.word.is_some())
    );
}
