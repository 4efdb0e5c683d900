use firn_protocol::{
    bitcoin::verify_bip340,
    merkle::{InclusionProof, LeafHash},
    messages::package_leaf,
    reject::Reject,
    signable::Item,
};

use super::{CeremonyFault, DkgMade, open};
use crate::session::{
    fake::{
        dkg::{Ceremonial, DkgHabit},
        id,
    },
    proof::{ProofAttempt, subsets},
};

fn make(ceremony: &mut Ceremonial) -> Result<Box<DkgMade>, CeremonyFault> {
    let (attempt, opening) =
        open(ceremony.plan.clone(), &ceremony.voice, &mut ceremony.rng).unwrap();
    ceremony.run(attempt, opening)
}

#[test]
fn members_make_a_key_and_every_subset_proves_that_it_signs() {
    for (threshold, count, wanted) in [(2, 3, 3), (3, 5, 10)] {
        let mut ceremony = Ceremonial::new(threshold, count);
        let made = make(&mut ceremony).unwrap();
        let public = made.sharing.public().clone();
        let groups = subsets(public.members(), usize::from(threshold));
        let mut proofs = Vec::new();
        for group in groups {
            let (attempt, opening) =
                ProofAttempt::open(&made.sharing, &group, &ceremony.voice, &mut ceremony.rng)
                    .unwrap();
            let proof = ceremony.run(attempt, opening).unwrap();
            let header = proof
                .header
                .clone()
                .verify(&ceremony.voice.identity())
                .unwrap();
            assert_eq!(*header.members, *group);
            let item = Item::proof_of_life(
                made.sharing.plan_digest(),
                made.sharing.share_version(),
                &group,
                &header.nonce,
            )
            .unwrap();
            let key = *public.untweaked().output_key();
            assert!(verify_bip340(
                &key,
                &item.message,
                proof.signature.signature.as_bytes()
            ));
            proofs.push(*proof);
        }
        assert_eq!(proofs.len(), wanted);
        let record = made.record(proofs).unwrap();
        assert_eq!(record.certificates.len(), usize::from(count));
        assert_eq!(record.deliveries.len(), usize::from(count));
    }
}

#[test]
fn every_delivered_package_is_proven_by_its_senders_manifest() {
    let made = make(&mut Ceremonial::new(3, 5)).unwrap();
    for (place, delivery) in made.deliveries.iter().enumerate() {
        assert_eq!(delivery.packages.len(), 4);
        for package in &delivery.packages {
            let manifest = made
                .manifests
                .iter()
                .find(|manifest| manifest.member == package.sender)
                .unwrap();
            let recipient = u16::try_from(place).unwrap() + 1;
            let index = u64::from(recipient - 1 - u16::from(package.sender < id(recipient)));
            let hashes = package.path.iter().map(|hash| *hash.as_bytes()).collect();
            let leaf = LeafHash::of(&package_leaf(&package.package).unwrap());
            let size = firn_protocol::merkle::TreeSize::new(4);
            InclusionProof::from_hashes(hashes)
                .unwrap()
                .verify(leaf, index, size, manifest.packages)
                .unwrap();
        }
    }
}

#[test]
fn a_ceremony_that_fails_names_its_culprit_and_its_step() {
    use DkgHabit::*;
    for (habit, code, culprit, step) in [
        (
            Refuses(Reject::PlanNotAccepted),
            Reject::PlanNotAccepted,
            2,
            "round one",
        ),
        (ShortCommitment, Reject::DkgCommitment, 2, "round one"),
        (AnotherPlan, Reject::SessionMismatch, 2, "round one"),
        (TooFewSealingKeys, Reject::SessionMembers, 2, "round one"),
        (SilentInRound2, Reject::Deadline, 2, "round two"),
        (RootOfOtherPackages, Reject::DkgEquivocation, 2, "round two"),
        (AnotherRound1, Reject::DkgEquivocation, 2, "round two"),
        (PackageForItself, Reject::SessionMembers, 2, "round two"),
        (
            AnotherTranscript,
            Reject::CertificateMismatch,
            2,
            "certificates",
        ),
        (
            AnotherGroupKey,
            Reject::CertificateMismatch,
            2,
            "certificates",
        ),
        (Complains, Reject::DkgShare, 2, "certificates"),
        (
            ComplainsOfWhatWasNotSent,
            Reject::DkgShare,
            2,
            "certificates",
        ),
        (
            AcknowledgesAnotherSet,
            Reject::UnexpectedMessage,
            2,
            "acknowledgements",
        ),
    ] {
        let fault = make(&mut Ceremonial::new(2, 3).with(2, habit))
            .map(|_| ())
            .unwrap_err();
        let wanted = CeremonyFault {
            code,
            culprit: Some(id(culprit)),
            accuser: None,
            step,
        };
        assert_eq!(fault, wanted, "{habit:?}");
    }
}

#[test]
fn an_accusation_is_told_as_its_accusers_word() {
    let code = Reject::DkgCommitment;
    for (accuser, accused_by) in [(2, Some(id(2))), (1, None)] {
        let mut ceremony = Ceremonial::new(2, 3).with(accuser, DkgHabit::Accuses(code));
        let fault = make(&mut ceremony).map(|_| ()).unwrap_err();
        assert_eq!((fault.culprit, fault.accuser), (Some(id(1)), accused_by));
        let told = fault.to_message().unwrap();
        let (culprit, step) = match accused_by {
            Some(_) => (None, "round one: member 2 accuses member 1"),
            // Whoever blames itself is believed.
            None => (Some(id(1)), "round one"),
        };
        assert_eq!((told.code, told.culprit.0), (code, culprit));
        assert_eq!(told.step.to_string(), step);
    }
}

#[test]
fn members_that_agree_on_another_transcript_do_not_pass() {
    let mut ceremony = Ceremonial::new(2, 3);
    for member in 1..=3 {
        ceremony = ceremony.with(member, DkgHabit::AnotherTranscript);
    }
    let fault = make(&mut ceremony).map(|_| ()).unwrap_err();
    assert_eq!(fault.code, Reject::CertificateMismatch);
}

#[test]
fn a_complaint_is_judged_by_opening_the_package() {
    use DkgHabit::*;
    for (dealer, complainer, culprit) in [
        (SealsAnotherShare, Complains, 1),
        (SealsGarbage, Complains, 1),
        (Honest, Complains, 2),
        // What it published does not open what was sealed to it.
        (SealsAnotherShare, ComplainsWithAnotherKey, 2),
        (SealsAnotherShare, ComplainsOfWhatWasNotSent, 2),
    ] {
        let mut ceremony = Ceremonial::new(2, 3).with(1, dealer).with(2, complainer);
        let fault = make(&mut ceremony).map(|_| ()).unwrap_err();
        let wanted = (Reject::DkgShare, Some(id(culprit)));
        assert_eq!(
            (fault.code, fault.culprit),
            wanted,
            "{dealer:?} {complainer:?}"
        );
    }
}

#[test]
fn a_bad_share_in_a_proof_of_life_is_named() {
    let mut ceremony = Ceremonial::new(2, 3).with(3, DkgHabit::BadProofShare);
    let made = make(&mut ceremony).unwrap();
    let members = [id(1), id(3)];
    let (attempt, opening) =
        ProofAttempt::open(&made.sharing, &members, &ceremony.voice, &mut ceremony.rng).unwrap();
    let fault = ceremony.run(attempt, opening).map(|_| ()).unwrap_err();
    assert_eq!(
        (fault.code, fault.culprit),
        (Reject::FinalSignature, Some(id(3)))
    );
}
