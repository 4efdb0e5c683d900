//! Complaints: a member says that another dealt it a bad share, and publishes the key that opens that
//! one package. It decides which of the two lied, from what both have signed, and believes neither.

use firn_protocol::{
    envelope::{Envelope, Verified},
    ids::{Identifier, MessageDigest},
    merkle::{InclusionProof, LeafHash, TreeSize},
    messages::{Complaint, DkgManifest, DkgRound1, ProvenPackage, package_leaf},
    reject::Reject,
    threshold::{SealingContext, dealt_share_matches, open, sealing_key_of},
};

use super::Context;
use crate::session::{Fault, word_of};

/// What the members have signed before a complaint can come.
pub(super) struct Said<'a> {
    pub(super) round1: &'a [Verified<DkgRound1>],
    pub(super) manifests: &'a [Verified<DkgManifest>],
}

impl Context {
    /// Who is at fault by a complaint: the accused where its package does not open to the share
    /// that its commitment promises, the complainer in every other case.
    pub(super) fn complaint(
        &self,
        from: Identifier,
        envelope: Envelope<Complaint>,
        said: &Said<'_>,
    ) -> Fault {
        let complaint = match word_of(&self.members, from, envelope) {
            Ok(complaint) => complaint,
            Err(fault) => return fault,
        };
        let proven = &complaint.package;
        let about_this = complaint.attempt == self.session()
            && complaint.member == from
            && proven.package.recipient == from
            && self.signed_by_sender(proven, said.manifests);
        if about_this && self.sender_lied(&complaint, said.round1) {
            Fault::misbehaved(proven.sender, Reject::DkgShare)
        } else {
            Fault::misbehaved(from, Reject::DkgShare)
        }
    }

    /// Opens the package as its recipient would have.
    fn sender_lied(&self, complaint: &Complaint, round1: &[Verified<DkgRound1>]) -> bool {
        let proven = &complaint.package;
        let said_by = |member| round1.iter().find(|round1| round1.member == member);
        let (Some(sender), Some(recipient)) = (said_by(proven.sender), said_by(complaint.member))
        else {
            return false;
        };
        let announced = recipient
            .sealing_keys
            .iter()
            .find(|(from, _)| *from == proven.sender)
            .map(|(_, key)| *key);
        // Another key opens nothing, which would prove nothing.
        if sealing_key_of(&complaint.secret).ok() != announced {
            return false;
        }
        let context = SealingContext {
            plan: self.plan_digest(),
            attempt: self.session(),
            sender: proven.sender,
            recipient: complaint.member,
            sender_round1: MessageDigest::from_bytes(sender.digest()),
        };
        match open(&context, &complaint.secret, &proven.package) {
            Ok(share) => !dealt_share_matches(&sender.commitment, complaint.member, &share),
            // It is signed by its sender and does not open with the announced key.
            Err(_) => true,
        }
    }

    /// Whether the package is a leaf of its sender's manifest, at the recipient's place.
    fn signed_by_sender(
        &self,
        proven: &ProvenPackage,
        manifests: &[Verified<DkgManifest>],
    ) -> bool {
        let recipient = proven.package.recipient;
        let place = self
            .others(proven.sender)
            .position(|other| other == recipient);
        let size = self.members.len().saturating_sub(1);
        let manifest = manifests
            .iter()
            .find(|manifest| manifest.member == proven.sender);
        let hashes = proven.path.iter().map(|hash| *hash.as_bytes()).collect();
        let (Some(place), Some(manifest), Ok(path), Ok(leaf)) = (
            place.and_then(|place| u64::try_from(place).ok()),
            manifest,
            InclusionProof::from_hashes(hashes),
            package_leaf(&proven.package),
        ) else {
            return false;
        };
        let size = TreeSize::new(u64::try_from(size).unwrap_or(u64::MAX));
        path.verify(LeafHash::of(&leaf), place, size, manifest.packages)
            .is_ok()
    }
}
