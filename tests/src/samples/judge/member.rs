//! Between a coordinator and member 1: what the member does with each message, and the coordinator
//! with each answer.

use firn_participant::session::{judge_proof, judge_request};
use firn_protocol::{
    bitcoin::verify_bip340,
    documents::Certificate,
    envelope::Envelope,
    ids::PlanDigest,
    limits,
    merkle::{InclusionProof, LeafHash, TreeSize},
    messages::{
        CertificateSet, Delivery, DkgRound1Set, DkgRound2, Final, FromMember, MemberStatus,
        OutcomeStatement, Package, ProvenPackage, SignOpen, ToMember, input_digest, package_leaf,
        package_tree,
    },
    reject::Reject,
    threshold::{SealingContext, SigningList, dealt_share_matches, open},
};

use super::{
    Verdict, certified, check_standing, decode, documents as document, ensure, member_word,
    outcome, status, word,
};
use crate::samples::{NOW, TIME, World, dealing::Dealing, people::member, signing::Round};

/// What member 1 does.
pub(in crate::samples) fn to_member(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, to_member_limit(bytes))? {
        ToMember::SignOpen(open) => sign_open(world, &open),
        ToMember::Package(package) => check_package_of(world, &world.request, &package),
        ToMember::Final(message) => check_final(world, &message),
        ToMember::KeyQuery(query) => document::key_query_envelope(world, &query),
        ToMember::Deliver(deliver) => document::key_documents(world, &deliver.documents),
        ToMember::OutcomeQuery(query) => outcome::query_of_owner(world, &query),
        ToMember::StatusQuery(query) => status::query(world, &query),
        ToMember::DkgOpen(open) => firn_participant::session::dkg::Opened::judge(
            &open,
            Some(&world.plan_endorsed),
            &world.authorities,
            world.authorities_digest,
            &world.people.member(member(1)).key(),
            NOW,
        )
        .map(|_| ()),
        ToMember::DkgRound1Set(set) => round1_set(world, &set),
        ToMember::Delivery(delivery) => check_delivery(world, &world.dealing, 1, &delivery, true),
        ToMember::CertificateSet(set) => certificate_set(world, &set),
        ToMember::ProofOpen(open) => {
            let judged = judge_proof(&open, &world.certified, member(1), &world.authorities, NOW)?;
            world.ledger.judge(judged.command).map(|_| ())
        }
    }
}

/// The limit of the message that is awaited; only its head says which one this is.
fn to_member_limit(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(2) => limits::MAX_PACKAGE,
        Some(3) => limits::MAX_SHARES * 2,
        Some(11) => limits::MAX_CEREMONY_MESSAGE * 2,
        Some(12 | 13) => limits::MAX_CEREMONY_MESSAGE,
        _ => limits::MAX_OPEN,
    }
}

fn sign_open(world: &World, open: &SignOpen) -> Verdict {
    let key = |key_id| {
        let known = (key_id == world.key_id()).then(|| world.key.clone());
        known.ok_or(Reject::KeyUnknown)
    };
    match judge_request(open, key, &world.authorities, TIME) {
        Ok((_, judged)) => world.ledger.judge(judged.command).map(|_| ()),
        Err(refused) => {
            let raised = refused.shown().map_or(Ok(()), |shown| {
                world.ledger.judge(shown.command()).map(|_| ())
            });
            Err(refused.code(raised))
        }
    }
}

/// The package of a session that member 1 takes part in.
pub(super) fn check_package_of(world: &World, round: &Round, package: &Package) -> Verdict {
    let body = word(&world.people.coordinator.key(), &package.body)?;
    ensure(body.session == round.id(), Reject::SessionMismatch)?;
    let members = round.header.members.to_vec();
    ensure(
        package.commitments.len() == members.len(),
        Reject::PackageMembers,
    )?;
    let mut commitments = Vec::new();
    for (place, (own, envelope)) in members.iter().zip(&package.commitments).enumerate() {
        let is_own = *own == member(1);
        let sent = round.commitments[place].envelope();
        ensure(!is_own || envelope == sent, Reject::PackageAltered)?;
        let said = member_word(world, own.value(), envelope)?;
        ensure(said.session == round.id(), Reject::SessionMismatch)?;
        ensure(said.member == *own, Reject::PackageMembers)?;
        ensure(said.inputs.len() == round.items.len(), Reject::InputCount)?;
        check_standing(world, own.value(), &said.standing)?;
        commitments.push(said);
    }
    ensure(body.inputs.len() == round.items.len(), Reject::InputCount)?;
    for (input, (item, digest)) in round.items.iter().zip(&body.inputs).enumerate() {
        let list: Vec<_> = commitments
            .iter()
            .map(|said| (said.member, said.inputs[input]))
            .collect();
        ensure(input_digest(&list)? == *digest, Reject::PackageDigest)?;
        SigningList::new(&members, &list, &item.message).map_err(|_| Reject::PackageMembers)?;
    }
    Ok(())
}

fn check_final(world: &World, message: &Final) -> Verdict {
    let round = &world.request;
    ensure(message.session == round.id(), Reject::SessionMismatch)?;
    check_signatures(world, round, &message.signatures)
}

/// One signature for each item, good for the key of its address.
pub(super) fn check_signatures(
    world: &World,
    round: &Round,
    signatures: &[firn_protocol::documents::InputSignature],
) -> Verdict {
    ensure(signatures.len() == round.items.len(), Reject::InputCount)?;
    for (item, signed) in round.items.iter().zip(signatures) {
        ensure(signed.input == item.input, Reject::FinalSignature)?;
        let output_key = match &item.address {
            Some(derived) => *derived.output_key(),
            None => *world.certified.public().untweaked().output_key(),
        };
        let bytes = signed.signature.as_bytes();
        ensure(
            verify_bip340(&output_key, &item.message, bytes),
            Reject::FinalSignature,
        )?;
    }
    Ok(())
}

fn round1_set(world: &World, set: &DkgRound1Set) -> Verdict {
    ensure(
        set.messages.len() == world.plan.roster.len(),
        Reject::SessionMembers,
    )?;
    for (number, envelope) in (1..).zip(&set.messages) {
        let own = number == 1 && envelope != world.dealing.round1[0].envelope();
        ensure(!own, Reject::PackageAltered)?;
        document::round1_of(world, &world.dealing, number, envelope)?;
    }
    Ok(())
}

/// A sealed package is a leaf of its sender's manifest, at its recipient's place.
pub(super) fn check_package(
    world: &World,
    dealing: &Dealing,
    recipient: u16,
    proven: &ProvenPackage,
) -> Verdict {
    let sender = proven.sender.value();
    let in_roster = (1..=3).contains(&sender) && sender != recipient;
    ensure(in_roster, Reject::SessionMembers)?;
    let sealed_for = proven.package.recipient.value() == recipient;
    ensure(sealed_for, Reject::SessionMembers)?;
    let manifest = &dealing.round2[usize::from(sender) - 1].manifest;
    let manifest = document::manifest_of(world, dealing, sender, manifest)?;
    let place = (1..=3)
        .filter(|other| *other != sender)
        .position(|other| other == recipient);
    let place = u64::try_from(place.ok_or(Reject::SessionMembers)?).unwrap();
    let hashes = proven.path.iter().map(|hash| *hash.as_bytes()).collect();
    let leaf = LeafHash::of(&package_leaf(&proven.package)?);
    InclusionProof::from_hashes(hashes)
        .and_then(|proof| proof.verify(leaf, place, TreeSize::new(2), manifest.packages))
        .map_err(|_| Reject::PackageDigest)
}

/// What is sealed to one member; `opens` where that member itself judges.
pub(super) fn check_delivery(
    world: &World,
    dealing: &Dealing,
    recipient: u16,
    delivery: &Delivery,
    opens: bool,
) -> Verdict {
    ensure(
        delivery.manifests.len() == world.plan.roster.len(),
        Reject::SessionMembers,
    )?;
    let places: Vec<_> = (1..=3).filter(|sender| *sender != recipient).collect();
    for (number, manifest) in (1..).zip(&delivery.manifests) {
        let own =
            number == recipient && *manifest != dealing.round2[usize::from(recipient) - 1].manifest;
        ensure(!own, Reject::PackageAltered)?;
        document::manifest_of(world, dealing, number, manifest)?;
    }
    ensure(
        delivery.packages.len() == places.len(),
        Reject::SessionMembers,
    )?;
    for (sender, proven) in places.into_iter().zip(&delivery.packages) {
        ensure(proven.sender.value() == sender, Reject::SessionMembers)?;
        check_package(world, dealing, recipient, proven)?;
        if opens {
            let context = SealingContext {
                plan: PlanDigest::from_bytes(world.plan.digest()),
                attempt: dealing.header.session_id(),
                sender: proven.sender,
                recipient: member(recipient),
                sender_round1: dealing.round1_digests()[usize::from(sender) - 1],
            };
            let secret = dealing.complaint(member(recipient), proven.sender).secret;
            let share = open(&context, &secret, &proven.package).map_err(|_| Reject::DkgShare)?;
            let commitment = &dealing.round1[usize::from(sender) - 1].commitment;
            let good = dealt_share_matches(commitment, member(recipient), &share);
            ensure(good, Reject::DkgShare)?;
        }
    }
    Ok(())
}

fn certificate_set(world: &World, set: &CertificateSet) -> Verdict {
    let sharing = certified(world, &set.certificates)?;
    let own: &Envelope<Certificate> = world.certified.certificates()[0].envelope();
    ensure(set.certificates.contains(own), Reject::CertificateMismatch)?;
    ensure(
        sharing.set_digest() == world.certified.set_digest(),
        Reject::CertificateMismatch,
    )
}

/// What the coordinator does with member 1's answer, or with member 3's refusal; what it only passes on
/// is judged as whoever asked does.
pub(in crate::samples) fn from_member(world: &World, bytes: &[u8]) -> Verdict {
    match decode(bytes, from_member_limit(bytes))? {
        FromMember::Commitments(said) => document::commitments_envelope(world, &said),
        FromMember::Shares(said) => document::shares_envelope(world, &said),
        FromMember::Receipt(said) => document::receipt_envelope(world, &said),
        FromMember::Refusal(said) => document::refusal_envelope(world, &said),
        FromMember::KeyDocuments(documents) => document::key_documents(world, &documents),
        FromMember::Acknowledgement(said) => document::acknowledgement_envelope(world, &said),
        FromMember::Outcome(said) => outcome::statement(world, &said),
        FromMember::Status(said) => status::status(world, &said),
        FromMember::DkgRound1(said) => document::dkg_round1_envelope(world, &said),
        FromMember::DkgRound2(said) => round2(world, &said),
        FromMember::Certificate(said) => document::certificate_envelope(world, &said),
        FromMember::Complaint(said) => document::complaint_envelope(world, &said),
    }
}

/// The limit of the conversation that the answer belongs to.
fn from_member_limit(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(1..=4) => limits::MAX_COMMITMENTS + limits::SMALL_DOCUMENT,
        Some(6) => limits::ROSTER_DOCUMENT + limits::SMALL_DOCUMENT,
        Some(7) => Envelope::<OutcomeStatement>::LIMIT + limits::SMALL_DOCUMENT,
        Some(8) => Envelope::<MemberStatus>::LIMIT + limits::SMALL_DOCUMENT,
        _ => limits::MAX_CEREMONY_MESSAGE,
    }
}

fn round2(world: &World, said: &DkgRound2) -> Verdict {
    let manifest = document::manifest_of(world, &world.dealing, 1, &said.manifest)?;
    let recipients = said
        .packages
        .iter()
        .map(|package| package.recipient.value());
    ensure(recipients.eq([2, 3]), Reject::SessionMembers)?;
    let tree = package_tree(&said.packages)?;
    let root = tree
        .root_at(tree.size())
        .map_err(|_| Reject::DkgEquivocation)?;
    ensure(root == manifest.packages, Reject::DkgEquivocation)
}
