//! A signing session as a coordinator carries it, honestly; the attacks bend what it carries.

use firn_protocol::{
    codec::List,
    documents::InputSignature,
    envelope::{Envelope, Verified},
    ids::{Identifier, SignatureShare},
    messages::{Commitment, Commitments, Final, Package, PackageBody, ShareList, input_digest},
    signable::{Item, Signable},
    threshold::{AddressKey, SigningList, aggregate},
};

use super::{
    member::{Session, Shared},
    people::CARRIER,
    world::{Draft, World},
};

pub fn said(envelope: &Envelope<Commitments>) -> Verified<Commitments> {
    let signer = envelope.claimed_signer().unwrap();
    envelope.clone().verify(&signer).unwrap()
}

fn lists(envelopes: &[Envelope<Commitments>]) -> Vec<Vec<(Identifier, Commitment)>> {
    let said: Vec<_> = envelopes.iter().map(said).collect();
    let inputs = said.iter().map(|said| said.inputs.len()).min().unwrap_or(0);
    (0..inputs)
        .map(|input| {
            said.iter()
                .map(|said| (said.member, said.inputs[input]))
                .collect()
        })
        .collect()
}

pub fn body(draft: &Draft, envelopes: &[Envelope<Commitments>]) -> PackageBody {
    let digests = lists(envelopes)
        .iter()
        .map(|list| input_digest(list).unwrap())
        .collect();
    PackageBody {
        session: draft.session(),
        inputs: List::new(digests).unwrap(),
    }
}

/// A package over these commitments, signed by the session's coordinator.
pub fn package(draft: &Draft, envelopes: &[Envelope<Commitments>]) -> Package {
    Package {
        body: CARRIER.sign(&body(draft, envelopes)),
        commitments: List::new(envelopes.to_vec()).unwrap(),
    }
}

pub fn sent(sessions: &[Session]) -> Vec<Envelope<Commitments>> {
    sessions
        .iter()
        .map(|session| session.commitments.clone())
        .collect()
}

/// The signatures, as an honest coordinator makes them.
fn signatures(
    world: &World,
    draft: &Draft,
    envelopes: &[Envelope<Commitments>],
    shares: &[Envelope<ShareList>],
) -> Final {
    let members = draft.header.members.to_vec();
    let items = items(world, draft);
    let made = items
        .iter()
        .zip(lists(envelopes))
        .enumerate()
        .map(|(input, (item, list))| {
            let list = SigningList::new(&members, &list, &item.message).unwrap();
            let shares: Vec<(Identifier, SignatureShare)> = shares
                .iter()
                .map(|envelope| {
                    let signer = envelope.claimed_signer().unwrap();
                    let share = envelope.clone().verify(&signer).unwrap();
                    (share.member, share.shares[input])
                })
                .collect();
            InputSignature {
                input: item.input,
                signature: aggregate(&list, &shares, &key(world, item)).unwrap(),
            }
        });
    Final {
        session: draft.session(),
        signatures: List::new(made.collect()).unwrap(),
    }
}

pub fn key(world: &World, item: &Item) -> AddressKey {
    item.key(world.sharing.as_ref().unwrap().certified().public())
        .unwrap()
}

/// What a request signs.
pub fn items(world: &World, draft: &Draft) -> Vec<Item> {
    let public = world.sharing.as_ref().unwrap().certified().public();
    let (key_id, network) = (world.domain.key_id(), draft.intent.network);
    let signable = Signable::of_intent(&draft.intent, key_id, network, public.group_key());
    signable.unwrap().items().to_vec()
}

/// A session whose shares have left, and the signatures that are made of them.
pub fn released(world: &mut World) -> (Draft, Vec<Shared>, Final) {
    let draft = world.draft(1, 60_000);
    let sessions = world.open(&draft.signed());
    let envelopes = sent(&sessions);
    let good = package(&draft, &envelopes);
    let members = draft.header.members.to_vec();
    let shared: Vec<_> = sessions
        .into_iter()
        .zip(members)
        .map(|(session, member)| {
            let member = &mut world.members[usize::from(member.value()) - 1];
            member.release(&world.domain, session, &good).ok().unwrap()
        })
        .collect();
    let shares: Vec<_> = shared.iter().map(|shared| shared.shares.clone()).collect();
    let made = signatures(world, &draft, &envelopes, &shares);
    (draft, shared, made)
}
