//! What the policy forbids: a grant and a requester's signature do not help.

use firn_protocol::{
    bitcoin::{Sats, ScriptPubKey},
    reject::Reject,
};

use super::{opening::refuse_all, world::with_sighash_all};

#[test]
fn what_the_policy_forbids_is_forbidden_also_with_a_grant() {
    refuse_all(&[
        ("to somebody else", Reject::PolicyDestination, |world, _| {
            let (inputs, mut outputs) = world.payment(60_000);
            outputs[0].output.script = ScriptPubKey::taproot(&[0x22; 32]);
            world.draft_of(7, world.intent((inputs, outputs))).signed()
        }),
        (
            "to change that is only said to be own",
            Reject::PolicyDestination,
            |world, _| {
                let (inputs, mut outputs) = world.payment(60_000);
                outputs[1].output.script = ScriptPubKey::taproot(&[0x22; 32]);
                world.draft_of(7, world.intent((inputs, outputs))).signed()
            },
        ),
        ("too much", Reject::PolicyOutflow, |world, _| {
            world.draft(7, 79_001).signed()
        }),
        ("too much to one", Reject::PolicyOutput, |world, _| {
            world.draft(7, 70_001).signed()
        }),
        ("too much to miners", Reject::PolicyFee, |world, _| {
            let (inputs, mut outputs) = world.payment(60_000);
            outputs[1].output.value = Sats::new(29_999).unwrap();
            world.draft_of(7, world.intent((inputs, outputs))).signed()
        }),
        ("at too high a rate", Reject::PolicyFeeRate, |world, _| {
            let (inputs, mut outputs) = world.payment(60_000);
            outputs[1].output.value = Sats::new(32_000).unwrap();
            world.draft_of(7, world.intent((inputs, outputs))).signed()
        }),
        (
            "with another signature type",
            Reject::PolicySighash,
            |world, _| {
                world
                    .draft_of(7, world.intent(with_sighash_all(world.payment(60_000))))
                    .signed()
            },
        ),
        (
            "with an input of somebody else",
            Reject::PolicyForeignInput,
            |world, _| {
                let (mut inputs, outputs) = world.payment(60_000);
                inputs[1].origin = None;
                inputs[1].spent.script = ScriptPubKey::taproot(&[0x22; 32]);
                world.draft_of(7, world.intent((inputs, outputs))).signed()
            },
        ),
    ]);
}
