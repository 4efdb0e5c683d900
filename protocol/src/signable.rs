//! From an intent to the hashes that are signed: everybody parses, derives and hashes for itself,
//! and nobody is told a digest.

use crate::{
    bitcoin::{
        ChildRange, DerivedKey, ExtendedKey, Network, OwnScripts, Psbt, PsbtError, SighashError,
        Summary, SummaryError,
    },
    codec,
    documents::{Content, Intent},
    ids::{GroupKey, Identifier, IntentDigest, KeyId, Nonce, PlanDigest, ShareVersion},
    limits,
    reject::Reject,
    tagged::tagged_hash,
    threshold::{AddressKey, PublicShares},
};

/// The children that a key's descriptor has: receiving and change, and every unhardened index.
pub const MAX_BRANCH: u32 = 1;
/// The highest index of a child.
pub const MAX_INDEX: u32 = (1 << 31) - 1;

/// One hash to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The input that it belongs to; 0 for a proof of life.
    pub input: u32,
    /// The 32 bytes.
    pub message: [u8; 32],
    /// The address whose key signs; none where the group key itself does.
    pub address: Option<DerivedKey>,
}

/// An intent, understood.
#[derive(Debug, Clone)]
pub struct Signable {
    intent: IntentDigest,
    items: Vec<Item>,
    summary: Option<Summary>,
}

impl Signable {
    /// Understands an intent for the key with this id and group key on this network.
    ///
    /// # Errors
    /// What is wrong with the intent, in the order of the participant's checks.
    pub fn of_intent(
        intent: &Intent,
        key_id: KeyId,
        network: Network,
        group_key: &GroupKey,
    ) -> Result<Self, Reject> {
        if intent.key_id != key_id {
            return Err(Reject::KeyUnknown);
        }
        if intent.network != network {
            return Err(Reject::NetworkMismatch);
        }
        match &intent.content {
            Content::Psbt(psbt) => Self::of_psbt(psbt.as_bytes(), key_id, network, group_key),
            Content::ProofOfLife(proof) => {
                let intent = intent_digest(2, key_id, network, proof.nonce.as_bytes());
                let message = tagged_hash("firn/proof-of-life", &[intent.as_bytes()]);
                Ok(Self {
                    intent,
                    items: vec![Item {
                        input: 0,
                        message,
                        address: None,
                    }],
                    summary: None,
                })
            }
        }
    }

    /// Understands a PSBT, for whoever writes an intent from it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_psbt(
        psbt: &[u8],
        key_id: KeyId,
        network: Network,
        group_key: &GroupKey,
    ) -> Result<Self, Reject> {
        let psbt = Psbt::parse(psbt)?;
        let key = ExtendedKey::of_group(group_key).map_err(|_| Reject::Internal)?;
        let range = ChildRange::new(MAX_BRANCH, MAX_INDEX).ok_or(Reject::Internal)?;
        let own = OwnScripts::new(key, range).map_err(|_| Reject::Internal)?;
        let summary = Summary::of(&psbt, network, &own)?;
        let items = summary
            .own_inputs()
            .map(|own| {
                let input = u32::try_from(own.index).map_err(|_| Reject::PsbtMalformed)?;
                Ok(Item {
                    input,
                    message: own.sighash,
                    address: Some(own.key),
                })
            })
            .collect::<Result<Vec<_>, Reject>>()?;
        if items.len() > limits::MAX_SESSION_INPUTS {
            return Err(Reject::PsbtMalformed);
        }
        let intent = intent_digest(1, key_id, network, &summary.intent_preimage());
        Ok(Self {
            intent,
            items,
            summary: Some(summary),
        })
    }

    /// What everybody means by "the intent".
    #[must_use]
    pub const fn intent_digest(&self) -> IntentDigest {
        self.intent
    }

    /// The hashes to be signed, ascending by input.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// What signing would do; none for a proof of life.
    #[must_use]
    pub const fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }
}

impl Item {
    /// The challenge of a ceremony's proof of life, which every member computes itself: it binds
    /// the plan, the sharing, the subset and the session's random bytes.
    ///
    /// # Errors
    /// Never for values that were decoded.
    pub fn proof_of_life(
        plan: PlanDigest,
        share_version: ShareVersion,
        members: &[Identifier],
        nonce: &Nonce,
    ) -> Result<Self, Reject> {
        let bytes = codec::encode(&(plan, share_version, members, nonce))?;
        let message = tagged_hash("firn/ceremony-proof-of-life", &[&bytes]);
        Ok(Self {
            input: 0,
            message,
            address: None,
        })
    }

    /// The public side of the key that signs this item.
    ///
    /// # Errors
    /// When the derivation does not lead to the address.
    pub fn key(&self, public: &PublicShares) -> Result<AddressKey, Reject> {
        match &self.address {
            Some(derived) => public.at(derived).map_err(|_| Reject::PsbtInconsistent),
            None => Ok(public.untweaked()),
        }
    }
}

/// The kinds' contents are canonical byte strings, and everything before them has one length.
fn intent_digest(kind: u8, key_id: KeyId, network: Network, content: &[u8]) -> IntentDigest {
    let network = network.number().to_be_bytes();
    let parts: [&[u8]; 4] = [&[kind], &network, key_id.as_bytes(), content];
    IntentDigest::from_bytes(tagged_hash("firn/intent", &parts))
}

impl From<PsbtError> for Reject {
    fn from(error: PsbtError) -> Self {
        match error {
            PsbtError::MissingSpentOutput(_) => Self::PsbtSpentOutputMissing,
            PsbtError::PreviousTransactionIdMismatch(_)
            | PsbtError::SpentOutputMismatch(_)
            | PsbtError::SpentAmountTooLarge
            | PsbtError::WitnessUtxoForNonWitness(_)
            | PsbtError::ScriptMismatch(_)
            | PsbtError::AlreadySigned(_)
            | PsbtError::DuplicateInput(_) => Self::PsbtInconsistent,
            PsbtError::TooLarge => Self::TooLarge,
            PsbtError::BadMagic
            | PsbtError::Truncated
            | PsbtError::TrailingBytes
            | PsbtError::NonMinimalCompactSize(_)
            | PsbtError::TooManyFields
            | PsbtError::DuplicateKey { .. }
            | PsbtError::UnsupportedVersion(_)
            | PsbtError::FieldOfOtherVersion { .. }
            | PsbtError::MissingField { .. }
            | PsbtError::WrongKeyLength { .. }
            | PsbtError::WrongValue { .. }
            | PsbtError::Transaction(_)
            | PsbtError::PreviousTransaction { .. }
            | PsbtError::RequiredLockTimeOutOfRange(_)
            | PsbtError::ConflictingLockTimes
            | PsbtError::NoSuchInput(_)
            | PsbtError::NotTaproot(_)
            | PsbtError::SighashTypeMismatch(_)
            | PsbtError::NotSigned(_) => Self::PsbtMalformed,
        }
    }
}

impl From<SighashError> for Reject {
    fn from(error: SighashError) -> Self {
        match error {
            SighashError::TypeRefused(_) => Self::PolicySighash,
            SighashError::SpentOutputCount | SighashError::NoSuchInput(_) => Self::PsbtInconsistent,
        }
    }
}

impl From<SummaryError> for Reject {
    fn from(error: SummaryError) -> Self {
        match error {
            SummaryError::Psbt(error) => error.into(),
            SummaryError::Sighash(error) => error.into(),
            SummaryError::UnknownSighashType { .. } => Self::PolicySighash,
            SummaryError::NoOwnInput => Self::PsbtNothingToSign,
            SummaryError::NoOutput => Self::PsbtMalformed,
            SummaryError::OutputsExceedInputs
            | SummaryError::NegativeOutflow
            | SummaryError::InputInternalKeyMismatch(_)
            | SummaryError::OutputInternalKeyMismatch(_)
            | SummaryError::InputScriptPath(_)
            | SummaryError::OutputScriptPath(_)
            | SummaryError::AlreadySigned(_) => Self::PsbtInconsistent,
        }
    }
}
