//! What is kept comes back as it was, or not at all.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use firn_protocol::{
    bitcoin::Network,
    codec::{List, Text},
    documents::{Ceremony, DkgTerms, Policy, RosterEntry, Sealing},
    ids::{
        AuthoritiesDigest, BuildDigest, CeremonyId, Epoch, GroupKey, Identifier, KeyId,
        PolicyVersion, RulesDigest, SessionId, ShareVersion, Threshold, TranscriptDigest,
        UnixMillis,
    },
    keys::IdentitySecret,
};
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::*;
use crate::private_files::{names, write_unfinished};

fn secret(number: u8) -> IdentitySecret {
    IdentitySecret::from_seed(&Zeroizing::new([number; 32]))
}

fn entry(number: u16) -> RosterEntry {
    RosterEntry {
        name: format!("m{number}").parse().unwrap(),
        identifier: Identifier::new(number).unwrap(),
        identity: secret(u8::try_from(number).unwrap()).identity(),
        tls_name: format!("spiffe://td/participant/m{number}")
            .parse()
            .unwrap(),
    }
}

fn plan(roster: &[u16]) -> Endorsed {
    let plan = Plan {
        ceremony_id: CeremonyId::from_bytes([1; 16]),
        ceremony: Ceremony::Dkg(DkgTerms {
            first_epoch: Epoch::new(1),
        }),
        network: Network::ALL[0],
        purpose: Text::new("a test").unwrap(),
        threshold: Threshold::new(2, 2).unwrap(),
        roster: List::new(roster.iter().map(|number| entry(*number)).collect()).unwrap(),
        authorities: AuthoritiesDigest::from_bytes([2; 32]),
        rules: RulesDigest::from_bytes([3; 32]),
        expires: UnixMillis::new(9),
    };
    Endorsed::unsigned(&plan)
        .unwrap()
        .endorse::<Plan>(&secret(9))
        .unwrap()
}

fn certificates(plan: PlanDigest) -> List<Envelope<Certificate>, { limits::MAX_MEMBERS }> {
    let certificate = |number: u16| {
        let certificate = Certificate {
            member: Identifier::new(number).unwrap(),
            plan,
            attempt: SessionId::from_bytes([4; 32]),
            transcript: TranscriptDigest::from_bytes([5; 32]),
            group_key: GroupKey::from_bytes([2; 33]),
            verifying_shares: List::empty(),
            share_version: ShareVersion::new(1),
            sealing: Sealing::KeyFile,
            software: Text::new("test").unwrap(),
            build: BuildDigest::from_bytes([6; 32]),
        };
        Envelope::sign(&certificate, &secret(u8::try_from(number).unwrap())).unwrap()
    };
    List::new(vec![certificate(1), certificate(2)]).unwrap()
}

fn key_documents() -> KeyDocuments {
    let plan = plan(&[1, 2]);
    let (_, plan_digest) = plan.read::<Plan>().unwrap();
    let key_id = KeyId::from_bytes(plan_digest);
    let policy = Policy {
        key_id,
        version: PolicyVersion::new(1),
        rules: List::empty(),
    };
    let signed = Envelope::sign(&policy, &secret(21)).unwrap();
    let verified = signed.clone().verify(&secret(21).identity()).unwrap();
    let certificates = certificates(PlanDigest::from_bytes(plan_digest));
    let activation = Activation {
        key_id,
        share_version: ShareVersion::new(1),
        certificates: set_digest(&certificates).unwrap(),
        policy: PolicyDigest::from_bytes(verified.digest()),
        policy_version: PolicyVersion::new(1),
        authorities: AuthoritiesDigest::from_bytes([2; 32]),
        first_epoch: Epoch::new(1),
        freeze_receipts: List::empty(),
    };
    let activation = Endorsed::unsigned(&activation)
        .unwrap()
        .endorse::<Activation>(&secret(9))
        .unwrap();
    KeyDocuments {
        plan,
        certificates,
        policy: signed,
        activation,
    }
}

fn place() -> (TempDir, Documents) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    let documents = Documents::open(folder.path()).unwrap();
    (folder, documents)
}

#[test]
fn gives_back_each_kind_by_its_digest_and_nothing_for_another() {
    let (folder, documents) = place();
    let key = key_documents();
    let set = CertificateSet {
        certificates: key.certificates.clone(),
    };
    let plan = documents.put_plan(&key.plan).unwrap();
    let activation = documents.put_key_documents(&key).unwrap();
    let certificates = documents.put_certificate_set(&set).unwrap();

    let documents = Documents::open(folder.path()).unwrap();
    assert_eq!(documents.plan(plan).unwrap(), Some(key.plan.clone()));
    assert_eq!(documents.key_documents(activation).unwrap(), Some(key));
    assert_eq!(documents.certificate_set(certificates).unwrap(), Some(set));
    let other = ActivationDigest::from_bytes([9; 32]);
    assert_eq!(documents.key_documents(other).unwrap(), None);
    assert_eq!(documents.accepted_plan(plan).unwrap(), None);
}

#[test]
fn gives_no_plan_as_accepted_but_the_one_that_was() {
    let (folder, documents) = place();
    let accepted = plan(&[1, 2]);
    let digest = documents.accept_plan(&accepted).unwrap();
    assert_eq!(documents.accept_plan(&accepted).unwrap(), digest);
    assert_eq!(documents.accepted_plan(digest).unwrap(), Some(accepted));
    assert_eq!(documents.plan(digest).unwrap(), None);

    let other = documents.put_plan(&plan(&[1, 3])).unwrap();
    assert_eq!(documents.accepted_plan(other).unwrap(), None);
    // An accepted plan under another one's name is not accepted.
    fs::copy(
        accepted_path(folder.path(), digest),
        accepted_path(folder.path(), other),
    )
    .unwrap();
    let error = documents.accepted_plan(other).unwrap_err();
    assert_eq!(error.code(), "document_damaged");
}

#[test]
fn accepts_no_plan_that_contradicts_itself() {
    let (folder, documents) = place();
    for roster in [&[2, 1][..], &[1, 1], &[1], &[1, 2, 3, 4]] {
        let error = documents.accept_plan(&plan(roster)).unwrap_err();
        assert_eq!(error.code(), "document_not_kept", "{roster:?}");
        assert!(documents.put_plan(&plan(roster)).is_err());
    }
    assert!(names(&folder.path().join(ACCEPTED)).unwrap().is_empty());
}

#[test]
fn refuses_key_documents_that_the_activation_does_not_bind() {
    let (_folder, documents) = place();
    let good = key_documents();
    let other_policy = Policy {
        key_id: KeyId::from_bytes([8; 32]),
        version: PolicyVersion::new(1),
        rules: List::empty(),
    };
    let fewer = good.certificates.clone().into_vec()[..1].to_vec();
    let swapped = good.certificates.clone().into_vec().into_iter().rev();
    for bad in [
        KeyDocuments {
            plan: plan(&[1, 3]),
            ..good.clone()
        },
        KeyDocuments {
            certificates: List::new(fewer).unwrap(),
            ..good.clone()
        },
        KeyDocuments {
            certificates: List::new(swapped.collect()).unwrap(),
            ..good.clone()
        },
        KeyDocuments {
            policy: Envelope::sign(&other_policy, &secret(21)).unwrap(),
            ..good.clone()
        },
        KeyDocuments {
            activation: good.plan.clone(),
            ..good.clone()
        },
    ] {
        let error = documents.put_key_documents(&bad).unwrap_err();
        assert_eq!(error.code(), "document_not_kept");
    }
    documents.put_key_documents(&good).unwrap();
}

/// Everything but the operators' signatures is found out here; those are the caller's to verify.
#[test]
fn never_gives_other_content_after_a_flipped_bit_or_a_cut() {
    let (_folder, documents) = place();
    let good = key_documents();
    let digest = documents.put_key_documents(&good).unwrap();
    let path = documents.path(KEYS, digest.as_bytes());
    let bytes = fs::read(&path).unwrap();
    for byte in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[byte] ^= 1 << (byte % 8);
        fs::write(&path, &bad).unwrap();
        match documents.key_documents(digest) {
            Ok(Some(found)) => {
                let (plan, activation) = (found.plan.read::<Plan>(), found.activation);
                assert_eq!(plan.unwrap(), good.plan.read::<Plan>().unwrap());
                assert_eq!(
                    activation.read::<Activation>().unwrap(),
                    good.activation.read::<Activation>().unwrap()
                );
                assert_eq!(found.certificates, good.certificates);
                assert_eq!(found.policy, good.policy);
            }
            Ok(None) => panic!("byte {byte}: gone"),
            Err(error) => assert_eq!(error.code(), "document_damaged", "byte {byte}"),
        }
    }
    for length in (0..bytes.len()).step_by(7) {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = documents.key_documents(digest).unwrap_err();
        assert_eq!(error.code(), "document_damaged", "{length}");
    }
}

#[test]
fn passes_over_what_a_crash_left_and_refuses_wide_modes() {
    let (_folder, documents) = place();
    let plan = plan(&[1, 2]);
    let digest = plan_digest(&plan).unwrap();
    let path = documents.path(PLANS, digest.as_bytes());
    write_unfinished(&path, b"half").unwrap();
    assert_eq!(documents.plan(digest).unwrap(), None);
    documents.put_plan(&plan).unwrap();
    assert_eq!(documents.plan(digest).unwrap(), Some(plan));
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let error = documents.plan(digest).unwrap_err();
    assert_eq!(error.code(), "file_permissions");
}
