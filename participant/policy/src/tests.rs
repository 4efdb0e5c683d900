//! Each rule at its bound and one over it; a table of what breaks.

use firn_protocol::{
    bitcoin::{
        Child, ChildRange, ExtendedKey, Network, OutPoint, OwnScripts, Psbt, Sats, ScriptPubKey,
        SighashType, Summary, TxIn, TxOut, Txid,
        psbt::{NewInput, NewOutput, build_v2},
    },
    codec::{Blob, List},
    documents::{DestinationRule, FeeRule, NetworkRule, OutflowRule, Rule, Rules, SighashRule},
    ids::GroupKey,
    reject::Reject,
};

use super::{evaluate, evaluate_proof_of_life};

/// The generator: the key whose secret is one.
const GROUP: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

fn own() -> OwnScripts {
    let group = GroupKey::from_hex(GROUP).unwrap();
    let range = ChildRange::new(1, 1_000).unwrap();
    OwnScripts::new(ExtendedKey::of_group(&group).unwrap(), range).unwrap()
}

fn sats(number: u64) -> Sats {
    Sats::new(number).unwrap()
}

fn allowed_script() -> ScriptPubKey {
    ScriptPubKey::new([&[0x00, 0x14][..], &[1; 20]].concat())
}

/// A payment of 60,000 to the allowed script, 39,000 change, 1,000 fee.
struct Payment {
    to: ScriptPubKey,
    amount: u64,
    change: u64,
    sighash_type: Option<SighashType>,
    foreign_input: bool,
}

impl Default for Payment {
    fn default() -> Self {
        let to = allowed_script();
        Self {
            to,
            amount: 60_000,
            change: 39_000,
            sighash_type: None,
            foreign_input: false,
        }
    }
}

impl Payment {
    fn summary(&self) -> Summary {
        let own = own();
        let receive = Child::new(0, 0).unwrap();
        let change = Child::new(1, 0).unwrap();
        let input = |vout, script, origin| NewInput {
            txin: TxIn {
                outpoint: OutPoint {
                    txid: Txid::new([7; 32]),
                    vout,
                },
                sequence: 0xffff_fffd,
            },
            spent: TxOut {
                value: sats(100_000),
                script,
            },
            origin,
            sighash_type: self.sighash_type,
        };
        let script = own.derive(receive).unwrap().script();
        let mut inputs = vec![input(0, script, Some(own.origin(receive).unwrap()))];
        let mut amount = self.amount;
        if self.foreign_input {
            inputs.push(input(1, allowed_script(), None));
            amount += 100_000;
        }
        let outputs = [
            NewOutput {
                output: TxOut {
                    value: sats(amount),
                    script: self.to.clone(),
                },
                origin: None,
            },
            NewOutput {
                output: TxOut {
                    value: sats(self.change),
                    script: own.derive(change).unwrap().script(),
                },
                origin: Some(own.origin(change).unwrap()),
            },
        ];
        let psbt = Psbt::parse(&build_v2(2, 0, &inputs, &outputs).unwrap()).unwrap();
        Summary::of(&psbt, Network::Regtest, &own).unwrap()
    }
}

fn all_rules() -> Vec<Rule> {
    vec![
        NetworkRule {
            network: Network::Regtest,
        }
        .into(),
        DestinationRule {
            allow: List::new(vec![
                Blob::new(allowed_script().as_bytes().to_vec()).unwrap(),
            ])
            .unwrap(),
        }
        .into(),
        OutflowRule {
            per_transaction: sats(61_000),
            per_output: sats(60_000),
        }
        .into(),
        FeeRule {
            absolute: sats(1_000),
            per_kvb: sats(1_000_000),
        }
        .into(),
        SighashRule { allow_all: false }.into(),
    ]
}

fn with(rule: impl Into<Rule>) -> Rules {
    let rule = rule.into();
    let rules = all_rules();
    let replaced = rules.into_iter().map(|old| {
        if old.number() == rule.number() {
            rule.clone()
        } else {
            old
        }
    });
    List::new(replaced.collect()).unwrap()
}

fn codes(rules: &Rules, payment: &Payment) -> Vec<Reject> {
    evaluate(rules, &payment.summary())
        .into_iter()
        .map(|violation| violation.code)
        .collect()
}

fn rules() -> Rules {
    List::new(all_rules()).unwrap()
}

#[test]
fn allows_what_is_exactly_at_every_bound() {
    assert_eq!(codes(&rules(), &Payment::default()), []);
}

#[test]
fn a_missing_rule_allows_nothing() {
    for missing in 0..5 {
        let mut kept = all_rules();
        kept.remove(missing);
        let kept = List::new(kept).unwrap();
        assert_eq!(
            codes(&kept, &Payment::default()),
            [Reject::PolicyMissingRule],
            "{missing}"
        );
    }
    let none = List::empty();
    assert_eq!(
        codes(&none, &Payment::default()),
        [Reject::PolicyMissingRule; 5]
    );
}

#[test]
fn refuses_another_network() {
    let rules = with(NetworkRule {
        network: Network::Mainnet,
    });
    assert_eq!(codes(&rules, &Payment::default()), [Reject::PolicyNetwork]);
    let proof = evaluate_proof_of_life(&rules, Network::Regtest);
    assert_eq!(
        proof.first().map(|violation| violation.code),
        Some(Reject::PolicyNetwork)
    );
    assert_eq!(evaluate_proof_of_life(&rules, Network::Mainnet), []);
}

#[test]
fn refuses_a_script_that_differs_in_one_byte_and_an_empty_list() {
    let mut script = allowed_script().as_bytes().to_vec();
    script[21] ^= 1;
    let payment = Payment {
        to: ScriptPubKey::new(script),
        ..Payment::default()
    };
    assert_eq!(codes(&rules(), &payment), [Reject::PolicyDestination]);
    let nobody = with(DestinationRule {
        allow: List::empty(),
    });
    assert_eq!(
        codes(&nobody, &Payment::default()),
        [Reject::PolicyDestination]
    );
}

#[test]
fn refuses_one_satoshi_over_each_amount() {
    let one_over = |per_transaction, per_output| {
        with(OutflowRule {
            per_transaction: sats(per_transaction),
            per_output: sats(per_output),
        })
    };
    let payment = Payment::default();
    assert_eq!(
        codes(&one_over(60_999, 60_000), &payment),
        [Reject::PolicyOutflow]
    );
    assert_eq!(
        codes(&one_over(61_000, 59_999), &payment),
        [Reject::PolicyOutput]
    );
    let nothing = one_over(0, 0);
    assert_eq!(
        codes(&nothing, &payment),
        [Reject::PolicyOutflow, Reject::PolicyOutput]
    );
}

#[test]
fn the_fee_counts_as_outflow_and_has_bounds_of_its_own() {
    let payment = Payment {
        change: 38_999,
        ..Payment::default()
    };
    assert_eq!(
        codes(&rules(), &payment),
        [Reject::PolicyOutflow, Reject::PolicyFee]
    );
}

#[test]
fn the_fee_rate_is_judged_by_the_size_of_the_signed_transaction() {
    // 1 input with a key path witness, outputs of 22 and 34 bytes of script: 142.5 -> 143 vbytes
    // by BIP-141 (125 bytes x 4 + 68 bytes of marker, flag and witness, over 4).
    let summary = Payment::default().summary();
    let base = summary.transaction().to_bytes().len() as u64;
    let vbytes = (base * 4 + 2 + 1 + 1 + 64).div_ceil(4);
    assert_eq!(super::signed_vbytes(&summary), vbytes);
    // 1,000 sat for these vbytes: the least whole rate that allows it, and one less.
    let least = 1_000_000_u64.div_ceil(vbytes);
    let at = |per_kvb| {
        with(FeeRule {
            absolute: sats(1_000),
            per_kvb: sats(per_kvb),
        })
    };
    assert_eq!(codes(&at(least), &Payment::default()), []);
    assert_eq!(
        codes(&at(least - 1), &Payment::default()),
        [Reject::PolicyFeeRate]
    );
}

#[test]
fn only_the_default_signature_type_unless_all_is_allowed() {
    let all = Payment {
        sighash_type: Some(SighashType::All),
        ..Payment::default()
    };
    assert_eq!(codes(&rules(), &all), [Reject::PolicySighash]);
    assert_eq!(codes(&with(SighashRule { allow_all: true }), &all), []);
}

#[test]
fn refuses_inputs_that_are_not_the_keys() {
    let payment = Payment {
        foreign_input: true,
        ..Payment::default()
    };
    let found = codes(&rules(), &payment);
    assert!(found.contains(&Reject::PolicyForeignInput), "{found:?}");
}
