//! The two rounds of FROST as evidence. It decides whether exactly t members signed exactly these
//! messages, each with its own word on its own share.

use firn_protocol::{
    documents::{InputSignature, Plan, RosterEntry},
    envelope::{Envelope, Verified},
    ids::{PackageDigest, Signature},
    keys::IdentityKey,
    messages::{Commitments, PackageBody, ShareList, input_digest},
    reject::Reject,
    session::SessionHeader,
    signable::Item,
    threshold::{PublicShares, SigningList, aggregate, verify_share},
};

/// What a round left behind.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// The session, by the coordinator's word.
    pub header: &'a Envelope<SessionHeader>,
    /// The members' commitments, ascending.
    pub commitments: &'a [Envelope<Commitments>],
    /// The coordinator's word on their lists.
    pub package: &'a Envelope<PackageBody>,
    /// The members' shares, ascending.
    pub shares: &'a [Envelope<ShareList>],
}

/// A session's header, if one of these coordinators signed it.
///
/// # Errors
/// Another signer; members that do not ascend.
pub fn header_of(
    header: &Envelope<SessionHeader>,
    coordinators: &[IdentityKey],
) -> Result<Verified<SessionHeader>, Reject> {
    let header = header.clone().verify_any(coordinators)?;
    if header.members_ascend() {
        Ok(header)
    } else {
        Err(Reject::SessionMembers)
    }
}

impl Round<'_> {
    /// Checks the round for these items and signatures, and says which session it was.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(
        &self,
        plan: &Plan,
        public: &PublicShares,
        coordinators: &[IdentityKey],
        items: &[Item],
        signatures: &[InputSignature],
    ) -> Result<Verified<SessionHeader>, Reject> {
        let header = header_of(self.header, coordinators)?;
        let members = chosen(plan, &header)?;
        let commitments = self.commitments(&header, &members)?;
        let package = self.package.clone().verify(header.signer())?;
        let shares = self.shares(&header, &members, &package)?;
        let counts = [
            package.inputs.len(),
            signatures.len(),
            commitments
                .iter()
                .map(|c| c.inputs.len())
                .max()
                .unwrap_or(0),
            commitments
                .iter()
                .map(|c| c.inputs.len())
                .min()
                .unwrap_or(0),
            shares.iter().map(|s| s.shares.len()).max().unwrap_or(0),
            shares.iter().map(|s| s.shares.len()).min().unwrap_or(0),
        ];
        if items.is_empty() || counts.iter().any(|count| *count != items.len()) {
            return Err(Reject::InputCount);
        }
        if package.session != header.session_id() {
            return Err(Reject::SessionMismatch);
        }
        for (place, item) in items.iter().enumerate() {
            let list: Vec<_> = commitments
                .iter()
                .filter_map(|word| Some((word.member, *word.inputs.get(place)?)))
                .collect();
            if package.inputs.get(place) != Some(&input_digest(&list)?) {
                return Err(Reject::PackageDigest);
            }
            let key = item.key(public)?;
            let list = SigningList::new(&header.members, &list, &item.message)
                .map_err(|_| Reject::PackageMembers)?;
            let made: Vec<_> = shares
                .iter()
                .filter_map(|word| Some((word.member, *word.shares.get(place)?)))
                .collect();
            for (member, share) in &made {
                verify_share(&list, *member, share, &key).map_err(|_| Reject::FinalSignature)?;
            }
            let signature: Signature =
                aggregate(&list, &made, &key).map_err(|_| Reject::FinalSignature)?;
            let expected = InputSignature {
                input: item.input,
                signature,
            };
            if signatures.get(place) != Some(&expected) {
                return Err(Reject::FinalSignature);
            }
        }
        Ok(header)
    }

    fn commitments(
        &self,
        header: &Verified<SessionHeader>,
        members: &[&RosterEntry],
    ) -> Result<Vec<Verified<Commitments>>, Reject> {
        if self.commitments.len() != members.len() {
            return Err(Reject::PackageMembers);
        }
        members
            .iter()
            .zip(self.commitments)
            .map(|(member, word)| {
                let word = word.clone().verify(&member.identity)?;
                if word.member != member.identifier || word.session != header.session_id() {
                    return Err(Reject::SessionMismatch);
                }
                Ok(word)
            })
            .collect()
    }

    fn shares(
        &self,
        header: &Verified<SessionHeader>,
        members: &[&RosterEntry],
        package: &Verified<PackageBody>,
    ) -> Result<Vec<Verified<ShareList>>, Reject> {
        if self.shares.len() != members.len() {
            return Err(Reject::PackageMembers);
        }
        members
            .iter()
            .zip(self.shares)
            .map(|(member, word)| {
                let word = word.clone().verify(&member.identity)?;
                if word.member != member.identifier || word.session != header.session_id() {
                    return Err(Reject::SessionMismatch);
                }
                if word.package != PackageDigest::from_bytes(package.digest()) {
                    return Err(Reject::PackageDigest);
                }
                Ok(word)
            })
            .collect()
    }
}

/// The roster's entries of exactly t members.
fn chosen<'a>(plan: &'a Plan, header: &SessionHeader) -> Result<Vec<&'a RosterEntry>, Reject> {
    if header.members.len() != usize::from(plan.threshold.value()) {
        return Err(Reject::SessionMembers);
    }
    header
        .members
        .iter()
        .map(|identifier| plan.member_at(*identifier).ok_or(Reject::NotAMember))
        .collect()
}
