//! A payment as a PSBT. It decides which inputs and outputs there are; it never signs, and whether the
//! payment is allowed is the participants' question.

pub use firn_client::payment::{SignedPayment, finish};
use firn_protocol::{
    bitcoin::{
        Child, ExtendedKey, OwnScripts, Sats,
        own::ChildRange,
        psbt::{NewInput, NewOutput, PsbtVersion, build_v0, build_v2},
        transaction::{OutPoint, ScriptPubKey, TxIn, TxOut},
    },
    ids::GroupKey,
    signable::{MAX_BRANCH, MAX_INDEX},
};

use crate::error::Error;

/// Signals replacement by fee (BIP-125) and no relative lock time.
const SEQUENCE: u32 = 0xffff_fffd;
/// Allows relative lock times; what wallets write.
const TRANSACTION_VERSION: u32 = 2;

/// An output of the key's own that is to be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coin {
    /// Where it is.
    pub outpoint: OutPoint,
    /// How much it holds.
    pub value: Sats,
    /// Whose key it is locked with.
    pub child: Child,
}

/// A payment to one stranger, with change.
#[derive(Debug, Clone)]
pub struct Payment {
    /// What is spent, in order.
    pub coins: Vec<Coin>,
    /// To whom.
    pub to: ScriptPubKey,
    /// How much.
    pub amount: Sats,
    /// What miners get.
    pub fee: Sats,
    /// Where the rest goes.
    pub change: Child,
    /// Which version of PSBT.
    pub version: PsbtVersion,
}

/// The scripts of all children that a key's descriptor has.
///
/// # Errors
/// [`Error::Key`].
pub fn own_scripts(group_key: &GroupKey) -> Result<OwnScripts, Error> {
    let key = ExtendedKey::of_group(group_key)?;
    let range = ChildRange::new(MAX_BRANCH, MAX_INDEX).ok_or_else(|| Error::Usage {
        what: "no such range of children".to_owned(),
    })?;
    Ok(OwnScripts::new(key, range)?)
}

impl Payment {
    /// The PSBT: every own input and the change say where their keys come from.
    ///
    /// # Errors
    /// [`Error::Payment`] where the coins do not suffice or an outpoint stands twice.
    pub fn to_psbt(&self, own: &OwnScripts) -> Result<Vec<u8>, Error> {
        let too_little = || Error::Usage {
            what: "the coins do not cover the amount and the fee".to_owned(),
        };
        let inputs = self
            .coins
            .iter()
            .map(|coin| {
                Ok(NewInput {
                    txin: TxIn {
                        outpoint: coin.outpoint,
                        sequence: SEQUENCE,
                    },
                    spent: TxOut {
                        value: coin.value,
                        script: own.derive(coin.child)?.script(),
                    },
                    origin: Some(own.origin(coin.child)?),
                    sighash_type: None,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let change = Sats::checked_sum(self.coins.iter().map(|coin| coin.value))
            .and_then(|sum| sum.checked_sub(self.amount))
            .and_then(|rest| rest.checked_sub(self.fee))
            .ok_or_else(too_little)?;
        let outputs = [
            NewOutput {
                output: TxOut {
                    value: self.amount,
                    script: self.to.clone(),
                },
                origin: None,
            },
            NewOutput {
                output: TxOut {
                    value: change,
                    script: own.derive(self.change)?.script(),
                },
                origin: Some(own.origin(self.change)?),
            },
        ];
        let build = match self.version {
            PsbtVersion::V0 => build_v0,
            PsbtVersion::V2 => build_v2,
        };
        Ok(build(TRANSACTION_VERSION, 0, &inputs, &outputs)?)
    }
}

#[cfg(test)]
mod tests {
    use firn_protocol::{
        bitcoin::{Child, Network, Sats, psbt::Psbt, transaction::Txid},
        documents::InputSignature,
        ids::{KeyId, Signature},
        signable::Signable,
    };

    use super::*;

    /// The generator: a point like any group key.
    fn group_key(first: &str) -> GroupKey {
        let x = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        GroupKey::from_hex(&format!("{first}{x}")).unwrap()
    }

    fn payment(version: PsbtVersion) -> Payment {
        let coin = |index: u8, value| Coin {
            outpoint: OutPoint {
                txid: Txid::new([index; 32]),
                vout: 1,
            },
            value: Sats::new(value).unwrap(),
            child: Child::new(0, index.into()).unwrap(),
        };
        Payment {
            coins: vec![coin(0, 60_000), coin(1, 45_000)],
            to: ScriptPubKey::new([&[0x00, 0x14][..], &[7; 20]].concat()),
            amount: Sats::new(70_000).unwrap(),
            fee: Sats::new(500).unwrap(),
            change: Child::new(1, 0).unwrap(),
            version,
        }
    }

    #[test]
    fn own_inputs_and_change_are_found_again_whatever_the_parity_and_version() {
        for first in ["02", "03"] {
            let key = group_key(first);
            let own = own_scripts(&key).unwrap();
            let mut digests = Vec::new();
            for version in [PsbtVersion::V0, PsbtVersion::V2] {
                let psbt = payment(version).to_psbt(&own).unwrap();
                assert_eq!(Psbt::parse(&psbt).unwrap().version(), version);
                let id = KeyId::from_bytes([1; 32]);
                let signable = Signable::of_psbt(&psbt, id, Network::Regtest, &key).unwrap();
                let inputs: Vec<_> = signable.items().iter().map(|item| item.input).collect();
                assert_eq!(inputs, [0, 1]);
                let summary = signable.summary().unwrap();
                assert_eq!(summary.fee().value(), 500);
                assert_eq!(summary.outflow().value(), 70_500);
                let own: Vec<_> = summary.outputs().iter().map(|output| output.own).collect();
                assert_eq!(own, [None, Some(Child::new(1, 0).unwrap())]);
                digests.push(signable.intent_digest());
            }
            assert_eq!(digests[0], digests[1]);
        }
    }

    #[test]
    fn refuses_coins_that_do_not_cover_the_payment_or_stand_twice() {
        let own = own_scripts(&group_key("02")).unwrap();
        let mut poor = payment(PsbtVersion::V2);
        poor.fee = Sats::new(35_001).unwrap();
        assert!(matches!(poor.to_psbt(&own), Err(Error::Usage { .. })));
        let mut twice = payment(PsbtVersion::V0);
        twice.coins[1].outpoint = twice.coins[0].outpoint;
        assert!(matches!(twice.to_psbt(&own), Err(Error::Payment(_))));
    }

    #[test]
    fn every_input_needs_its_own_signature_and_consensus_refuses_a_wrong_one() {
        let own = own_scripts(&group_key("02")).unwrap();
        let made = |input| InputSignature {
            input,
            signature: Signature::from_bytes([9; 64]),
        };
        for version in [PsbtVersion::V0, PsbtVersion::V2] {
            let psbt = payment(version).to_psbt(&own).unwrap();
            for signatures in [vec![], vec![made(0)], vec![made(0), made(0)], vec![made(2)]] {
                assert!(finish(&psbt, &signatures).is_err(), "{signatures:?}");
            }
            let signed = finish(&psbt, &[made(1), made(0)]).unwrap();
            assert_eq!(signed.spent.len(), 2);
            let verdicts = crate::verdict::consensus(&signed.transaction, &signed.spent);
            assert_eq!(verdicts.len(), 2);
            assert!(verdicts.iter().all(|verdict| !verdict.is_valid));
            assert!(!crate::verdict::accepts(&signed.transaction, &[]));
        }
    }
}
