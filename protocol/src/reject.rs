//! Why something was refused: one closed table of stable numbers and names, each in a class that
//! says whose turn it is. No free text reaches a peer.

use crate::{choice, codec::Malformed, envelope::EnvelopeError};

choice!(
    /// Whose fault a refusal is, and so what helps.
    pub enum Class {
        /// The bytes are wrong: the sender's software is at fault; sending them again is useless.
        1 "malformed" => Malformed,
        /// Somebody asked for what they may not have.
        2 "unauthorised" => Unauthorised,
        /// A step that does not follow from the one before.
        3 "out-of-order" => OutOfOrder,
        /// Something that has happened already, or in another way.
        4 "replayed" => Replayed,
        /// The key's policy does not allow it.
        5 "policy" => Policy,
        /// Not now; the same request may be tried again.
        6 "busy" => Busy,
        /// The participant itself is not in order; its operator is needed.
        7 "internal" => Internal,
    }
);

/// Writes the table once: number, name, class, meaning, what to do.
macro_rules! rejects {
    ($($number:literal $text:literal $variant:ident $class:ident $meaning:literal $advice:literal;)+) => {
        choice!(
            /// Why a participant or a coordinator refused. Numbers and names never change meaning.
            pub enum Reject { $(#[doc = $meaning] $number $text => $variant,)+ }
        );

        impl Reject {
            /// The class of the code.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)+ }
            }

            /// One sentence for a person: what it means.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// One sentence for a person: what to do next.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }
        }
    };
}

rejects! {
    100 "too_large" TooLarge Malformed "The message is larger than its kind allows." "Split the request, or use fewer inputs.";
    101 "truncated" Truncated Malformed "The message ends inside an item." "Update the sender: it writes incomplete messages.";
    102 "trailing_bytes" TrailingBytes Malformed "Bytes remain after the message." "Update the sender: it writes more than one item.";
    103 "indefinite_length" IndefiniteLength Malformed "The message holds an item of indefinite length." "Update the sender: its encoding is not deterministic.";
    104 "not_shortest" NotShortest Malformed "A number or length is not in its shortest form." "Update the sender: its encoding is not deterministic.";
    105 "unsorted_keys" UnsortedKeys Malformed "Map keys are out of order." "Update the sender: its encoding is not deterministic.";
    106 "duplicate_key" DuplicateKey Malformed "A map key stands twice." "Update the sender: its encoding is not deterministic.";
    107 "float" Float Malformed "The message holds a floating-point number." "Update the sender: the protocol has no such numbers.";
    108 "tag" Tag Malformed "The message holds a CBOR tag." "Update the sender: the protocol has no tags.";
    109 "simple_value" SimpleValue Malformed "The message holds null, undefined or another simple value." "Update the sender: the protocol has only true and false.";
    110 "reserved" Reserved Malformed "The message uses a reserved encoding." "Update the sender.";
    111 "invalid_utf8" InvalidUtf8 Malformed "A text is not UTF-8." "Update the sender.";
    112 "too_deep" TooDeep Malformed "The message is nested too deeply." "Update the sender.";
    113 "schema" Schema Malformed "The message is not of the kind that was expected." "Check that both sides speak the same version of the protocol.";
    114 "not_canonical" NotCanonical Malformed "The message is not the one encoding of its value." "Update the sender: its encoding is not deterministic.";
    115 "envelope_shape" EnvelopeShape Malformed "A signed document has other headers than the protocol's." "Sign with Firn's tools or as docs/protocol.cddl says.";
    116 "unsound_document" UnsoundDocument Malformed "A document contradicts itself: an order, a quorum or a count is wrong." "Have it written and signed again.";
    120 "psbt_malformed" PsbtMalformed Malformed "The PSBT breaks BIP-174, 370 or 371, or a size bound." "Export the PSBT again from the wallet; check its version.";
    121 "psbt_inconsistent" PsbtInconsistent Malformed "The PSBT contradicts itself: amounts, previous transactions, keys or scripts disagree." "Do not sign this transaction elsewhere either: find out who changed it.";
    122 "psbt_spent_output_missing" PsbtSpentOutputMissing Malformed "An input does not say which output it spends." "Add the spent output of every input to the PSBT.";
    123 "psbt_nothing_to_sign" PsbtNothingToSign Malformed "No input of the transaction belongs to the key." "Check that the wallet uses this key's descriptor.";

    200 "wrong_role" WrongRole Unauthorised "The peer's certificate does not have the role for this." "Connect with a certificate of the right role.";
    201 "unknown_signer" UnknownSigner Unauthorised "A document is signed by a key that does not count for it." "Have it signed by a key that the Authorities or the roster name.";
    202 "bad_signature" BadSignature Unauthorised "A signature does not verify." "Send the document as it was signed; check it for damage.";
    203 "quorum_not_met" QuorumNotMet Unauthorised "Too few distinct people have signed." "Collect the missing signatures.";
    204 "unknown_coordinator" UnknownCoordinator Unauthorised "The coordinator is not in the Authorities." "Add the coordinator to the Authorities, or use one that is.";
    205 "unknown_requester" UnknownRequester Unauthorised "The requester is not in the Authorities." "Add the requester to the Authorities.";
    206 "key_unknown" KeyUnknown Unauthorised "The participant has no share of this key." "Check the key id; ask a member of its roster.";
    207 "not_a_member" NotAMember Unauthorised "The participant, or the peer, is not in the roster." "Check the plan's roster.";
    208 "plan_not_accepted" PlanNotAccepted Unauthorised "The plan has not been accepted on this machine." "Compare the fingerprint and accept the plan on the member's machine.";
    209 "plan_expired" PlanExpired Unauthorised "The plan's time is over." "Have a new plan signed.";
    210 "authorities_mismatch" AuthoritiesMismatch Unauthorised "A document names other Authorities than this participant's." "Accept the same Authorities on every machine.";
    211 "activation_mismatch" ActivationMismatch Unauthorised "The request is for another activation of the key." "Ask the control plane for a grant under the current activation.";
    212 "share_not_active" ShareNotActive Unauthorised "The participant's share has not been activated." "Finish the ceremony: deliver the activation.";
    213 "certificate_mismatch" CertificateMismatch Unauthorised "The members' certificates do not agree." "Do not use this key; run the ceremony again and find out why.";
    220 "grant_not_yet_valid" GrantNotYetValid Unauthorised "The grant's time has not come." "Check the clocks; try again when it has.";
    221 "grant_expired" GrantExpired Unauthorised "The grant's time is over." "Ask the control plane for a fresh grant for the same request.";
    222 "grant_owner_mismatch" GrantOwnerMismatch Unauthorised "The grant is for another requester." "Use a grant that names this requester.";
    223 "grant_request_mismatch" GrantRequestMismatch Unauthorised "The grant is for another request." "Use the grant of this request.";
    224 "grant_intent_mismatch" GrantIntentMismatch Unauthorised "The grant is for another intent." "Ask for a grant for exactly this intent.";
    225 "grant_policy_mismatch" GrantPolicyMismatch Unauthorised "The grant is for another policy." "Ask for a grant under the current policy.";
    226 "grant_key_mismatch" GrantKeyMismatch Unauthorised "The grant is for another key." "Use a grant for this key.";
    227 "policy_version_behind" PolicyVersionBehind Unauthorised "The grant asks for a newer policy than the participant has." "Deliver the newer policy to the participant.";
    228 "revocations_behind" RevocationsBehind Unauthorised "The grant asks for newer revocations than the participant has." "Deliver the newer revocations to the participant.";
    230 "stale_epoch" StaleEpoch Unauthorised "A higher epoch has been seen: this owner may not sign any more." "Stop this owner; the key has a newer one.";
    231 "epoch_owner_conflict" EpochOwnerConflict Unauthorised "Another owner holds this epoch." "Ask the control plane which owner is the right one.";
    232 "epoch_jump" EpochJump Unauthorised "The epoch is too far above the highest seen." "Use the next epoch; raise it in steps.";
    233 "network_mismatch" NetworkMismatch Unauthorised "The intent is for another network than the key." "Use a key of that network.";

    300 "unexpected_message" UnexpectedMessage OutOfOrder "The message does not follow from the step before." "Start a new session.";
    301 "session_mismatch" SessionMismatch OutOfOrder "The message belongs to another session." "Start a new session.";
    302 "session_members" SessionMembers OutOfOrder "The session does not name exactly the members that it needs." "Start a session with exactly t members of the roster.";
    303 "package_members" PackageMembers OutOfOrder "The package does not hold exactly one commitment of each member." "Start a new session.";
    304 "package_altered" PackageAltered OutOfOrder "The package does not hold this member's own commitment as it was sent." "Find out who changed it: the coordinator has signed it.";
    305 "package_digest" PackageDigest OutOfOrder "The package's digests are not those of its lists." "Start a new session through another coordinator.";
    306 "input_count" InputCount OutOfOrder "A list does not have one entry for each own input." "Start a new session.";
    307 "final_signature" FinalSignature OutOfOrder "A final signature does not verify." "Start a new session; the coordinator or a member is at fault.";
    308 "deadline" Deadline OutOfOrder "The next step did not come in time." "Try the same request again.";
    309 "witness_conflict" WitnessConflict OutOfOrder "A peer has seen a later or another ledger of this participant." "Stop this participant: it was restored from an old copy, or runs twice.";
    310 "dkg_commitment" DkgCommitment OutOfOrder "A member's commitment has the wrong length or its proof fails." "Leave the named member out and run the ceremony again.";
    311 "dkg_share" DkgShare OutOfOrder "A member dealt a share that does not match its commitment." "Leave the named member out and run the ceremony again.";
    312 "dkg_equivocation" DkgEquivocation OutOfOrder "A member said two different things in one attempt." "Leave the named member out and run the ceremony again.";
    313 "attempt_abandoned" AttemptAbandoned OutOfOrder "The attempt of the ceremony has ended." "Start a new attempt.";

    400 "session_seen" SessionSeen Replayed "The session has been seen before." "Start a new session.";
    401 "request_conflict" RequestConflict Replayed "The request id stands for another intent." "Use a new request id for a new intent; nothing was overwritten.";
    402 "intent_already_signed" IntentAlreadySigned Replayed "The same transaction was asked for under another request." "Ask for the outcome of the first request.";
    403 "attempts_exhausted" AttemptsExhausted Replayed "This request has as many attempts in flight as it may have." "Wait for one of them to end.";

    500 "policy_network" PolicyNetwork Policy "The policy does not allow this network." "Check the policy with the policy authority.";
    501 "policy_destination" PolicyDestination Policy "An output goes where the policy does not allow." "Add the destination to the policy, or pay elsewhere.";
    502 "policy_outflow" PolicyOutflow Policy "The transaction costs the key more than the policy allows." "Pay less in one transaction.";
    503 "policy_output" PolicyOutput Policy "An output is larger than the policy allows." "Pay less in one output.";
    504 "policy_fee" PolicyFee Policy "The fee is higher than the policy allows." "Lower the fee.";
    505 "policy_fee_rate" PolicyFeeRate Policy "The fee rate is higher than the policy allows." "Lower the fee rate.";
    506 "policy_sighash" PolicySighash Policy "A signature type is not allowed." "Use SIGHASH_DEFAULT.";
    507 "policy_missing_rule" PolicyMissingRule Policy "The policy does not rule on something that it must rule on." "Have the policy completed and signed again.";
    508 "policy_foreign_input" PolicyForeignInput Policy "The transaction spends an input that is not the key's." "Leave foreign inputs out.";

    600 "busy" Busy Busy "Too much is waiting." "Try the same request again after the time that is given.";
    601 "quorum_unavailable" QuorumUnavailable Busy "Too few members are connected to sign." "Start the missing members; then try the same request again.";
    602 "session_failed" SessionFailed Busy "The session ended without a result." "Try the same request again.";

    700 "clock_rewound" ClockRewound Internal "The participant's clock is behind its ledger." "Set the clock right and restart the participant.";
    701 "ledger_unavailable" LedgerUnavailable Internal "The participant's ledger cannot be written." "Look at the participant's log and disk.";
    702 "frozen" Frozen Internal "The participant is frozen." "Find out why before it is unfrozen.";
    703 "share_unavailable" ShareUnavailable Internal "The participant's share cannot be opened." "Look at the participant's log.";
    704 "internal" Internal Internal "The participant failed in a way that it did not expect." "Look at the participant's log and report the defect.";
    705 "clock_skew" ClockSkew Internal "The clocks of a participant and a peer differ by more than is allowed." "Set the clocks right: compare both with a time server.";
}

impl From<Malformed> for Reject {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::TooLarge => Self::TooLarge,
            Malformed::Truncated => Self::Truncated,
            Malformed::TrailingBytes => Self::TrailingBytes,
            Malformed::IndefiniteLength => Self::IndefiniteLength,
            Malformed::NotShortest => Self::NotShortest,
            Malformed::UnsortedKeys => Self::UnsortedKeys,
            Malformed::DuplicateKey => Self::DuplicateKey,
            Malformed::Float => Self::Float,
            Malformed::Tag => Self::Tag,
            Malformed::Simple => Self::SimpleValue,
            Malformed::Reserved => Self::Reserved,
            Malformed::InvalidUtf8 => Self::InvalidUtf8,
            Malformed::TooDeep => Self::TooDeep,
            Malformed::Schema => Self::Schema,
            Malformed::NotCanonical => Self::NotCanonical,
        }
    }
}

impl From<EnvelopeError> for Reject {
    fn from(error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::Malformed(malformed) => malformed.into(),
            EnvelopeError::Shape => Self::EnvelopeShape,
            EnvelopeError::UnknownSigner => Self::UnknownSigner,
            EnvelopeError::BadSignature => Self::BadSignature,
            EnvelopeError::QuorumNotMet => Self::QuorumNotMet,
        }
    }
}

impl EnvelopeError {
    /// The code, where a signer that does not count has a name of its own.
    #[must_use]
    pub fn or_unknown(self, unknown: Reject) -> Reject {
        if self == Self::UnknownSigner {
            unknown
        } else {
            self.into()
        }
    }
}

impl std::error::Error for Reject {}

#[cfg(test)]
mod tests {
    use super::{Class, Reject};

    #[test]
    fn numbers_lie_in_the_hundred_of_their_class() {
        for code in Reject::ALL {
            assert_eq!(code.number() / 100, code.class().number(), "{code}");
        }
        assert_eq!(Class::ALL.len(), 7);
    }
}
