//! Packages and results that are not those of the session, and greetings from somebody else.

use firn_protocol::{
    codec::{self, List},
    documents::InputSignature,
    envelope::Envelope,
    ids::{MessageDigest, Nonce},
    messages::{Commitments, Final, Hello, Package, PackageBody, ToMember, Welcome},
    reject::Reject,
};

use super::{Case, Cases};
use crate::{
    rewriting::payload,
    samples::{World, id, member},
};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut all = packages(world);
    all.extend(results(world));
    all.extend(greetings(world));
    all
}

fn packages(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("to-member-package");
    let people = &world.people;
    let good = world.request.package();
    let with = |alter: &dyn Fn(&mut Package)| {
        let mut package = good.clone();
        alter(&mut package);
        codec::encode(&ToMember::Package(package)).unwrap()
    };
    let listed = |commitments: &[&Envelope<Commitments>]| {
        let list: Vec<_> = commitments
            .iter()
            .map(|envelope| (*envelope).clone())
            .collect();
        with(&|package| package.commitments = List::new(list.clone()).unwrap())
    };
    let (first, second) = (&good.commitments[0], &good.commitments[1]);
    cases.add(
        "one commitment of two",
        Reject::PackageMembers,
        listed(&[first]),
    );
    cases.add(
        "a commitment too many",
        Reject::PackageMembers,
        listed(&[first, second, second]),
    );
    cases.add(
        "commitments out of order",
        Reject::PackageAltered,
        listed(&[second, first]),
    );
    let said: &Commitments = &world.request.commitments[1];
    let altered = |alter: &dyn Fn(&mut Commitments)| {
        let mut said = said.clone();
        alter(&mut said);
        people.members[1].sign(&said)
    };
    let other = altered(&|said| said.member = member(1));
    cases.add(
        "a commitment for somebody else",
        Reject::PackageMembers,
        listed(&[first, &other]),
    );
    let other = altered(&|said| said.session = world.proofs[0].id());
    cases.add(
        "a commitment of another session",
        Reject::SessionMismatch,
        listed(&[first, &other]),
    );
    let other = altered(&|said| said.inputs = List::new(vec![said.inputs[0]]).unwrap());
    cases.add(
        "a commitment too few",
        Reject::InputCount,
        listed(&[first, &other]),
    );
    let other = altered(&|said| {
        said.inputs = List::new(vec![said.inputs[1], said.inputs[0]]).unwrap();
    });
    cases.add(
        "other commitments than were listed",
        Reject::PackageDigest,
        listed(&[first, &other]),
    );
    let third = people.members[2].sign(said);
    cases.add(
        "a commitment by another member",
        Reject::UnknownSigner,
        listed(&[first, &third]),
    );
    let mut own = world.request.commitments[0].clone_document();
    own.inputs = List::new(vec![own.inputs[1], own.inputs[0]]).unwrap();
    let own = people.members[0].sign(&own);
    cases.add(
        "one's own commitment changed",
        Reject::PackageAltered,
        listed(&[&own, second]),
    );
    let bodies = |alter: &dyn Fn(&mut PackageBody)| {
        let mut body: PackageBody = world.request.body.clone_document();
        alter(&mut body);
        let body = people.coordinator.sign(&body);
        with(&|package| package.body = body.clone())
    };
    cases.add(
        "a digest of another list",
        Reject::PackageDigest,
        bodies(&|body| {
            let digests = vec![body.inputs[0], MessageDigest::from_bytes([1; 32])];
            body.inputs = List::new(digests).unwrap();
        }),
    );
    cases.add(
        "a digest too few",
        Reject::InputCount,
        bodies(&|body| {
            body.inputs = List::new(vec![body.inputs[0]]).unwrap();
        }),
    );
    cases.add(
        "a package of another session",
        Reject::SessionMismatch,
        bodies(&|body| {
            body.session = world.proofs[0].id();
        }),
    );
    let body = people.stranger.sign(&*world.request.body);
    cases.add("a stranger's package", Reject::UnknownSigner, {
        with(&|package| package.body = body.clone())
    });
    // Its envelope is whole: only the points are none.
    let bytes = payload(second.as_bytes());
    let point = said.inputs[0].hiding;
    let at = bytes
        .windows(33)
        .position(|w| w == point.as_bytes())
        .unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at] = 0x05;
    let no_point: Commitments = codec::decode(&bytes, bytes.len()).unwrap();
    let no_point = people.members[1].sign(&no_point);
    let mut body: PackageBody = world.request.body.clone_document();
    let verified = no_point.clone().verify(&people.members[1].key()).unwrap();
    let digests = (0..2).map(|input| {
        let list = [
            (member(1), world.request.commitments[0].inputs[input]),
            (member(2), verified.inputs[input]),
        ];
        firn_protocol::messages::input_digest(&list).unwrap()
    });
    body.inputs = List::new(digests.collect()).unwrap();
    let body = people.coordinator.sign(&body);
    cases.add(
        "a commitment that is no point",
        Reject::PackageMembers,
        with(&|package| {
            package.body = body.clone();
            package.commitments = List::new(vec![first.clone(), no_point.clone()]).unwrap();
        }),
    );
    cases.cases
}

fn results(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("to-member-final");
    let message = |session, signatures: Vec<InputSignature>| {
        let signatures = List::new(signatures).unwrap();
        codec::encode(&ToMember::Final(Final {
            session,
            signatures,
        }))
        .unwrap()
    };
    let session = world.request.id();
    let good = &world.request.signatures;
    let at = |input: u32, of: usize| InputSignature {
        input,
        signature: good[of].signature,
    };
    let bad = Reject::FinalSignature;
    cases.add(
        "signatures exchanged",
        bad,
        message(session, vec![at(0, 1), at(1, 0)]),
    );
    cases.add(
        "one signature twice",
        bad,
        message(session, vec![at(0, 0), at(0, 0)]),
    );
    cases.add(
        "signatures out of order",
        bad,
        message(session, vec![at(1, 1), at(0, 0)]),
    );
    cases.add(
        "another input",
        bad,
        message(session, vec![at(0, 0), at(7, 1)]),
    );
    let mut zeros = at(1, 1);
    zeros.signature = firn_protocol::ids::Signature::from_bytes([0; 64]);
    cases.add(
        "a signature of zeros",
        bad,
        message(session, vec![at(0, 0), zeros]),
    );
    let few = Reject::InputCount;
    cases.add("a signature too few", few, message(session, vec![at(0, 0)]));
    cases.add("no signatures", few, message(session, vec![]));
    let other = message(world.proofs[0].id(), good.clone());
    cases.add(
        "the result of another session",
        Reject::SessionMismatch,
        other,
    );
    cases.cases
}

fn greetings(world: &World) -> Vec<Case> {
    let people = &world.people;
    let mut hellos = Cases::of("document-hello");
    let envelope: Envelope<Hello> = {
        let samples = crate::samples::all();
        let sample = samples
            .iter()
            .find(|sample| sample.name == "document-hello")
            .unwrap();
        Envelope::from_bytes(sample.bytes.clone()).unwrap()
    };
    let hello = envelope.verify(&people.requester.key()).unwrap();
    let with = |alter: &dyn Fn(&mut Hello)| {
        let mut hello: Hello = hello.clone_document();
        alter(&mut hello);
        people.requester.sign(&hello).as_bytes().to_vec()
    };
    hellos.add(
        "a hello under another name",
        Reject::NotAMember,
        with(&|hello| {
            hello.from = id("requester", "desk-b");
        }),
    );
    hellos.add(
        "a hello in another role",
        Reject::NotAMember,
        with(&|hello| {
            hello.from = id("operator", "desk");
        }),
    );
    hellos.add(
        "a hello to somebody else",
        Reject::UnknownCoordinator,
        with(&|hello| {
            hello.to = id("coordinator", "c2");
        }),
    );
    let stranger = people.stranger.sign(&*hello);
    hellos.add(
        "a stranger's hello",
        Reject::UnknownSigner,
        stranger.as_bytes(),
    );
    let wrapped = codec::encode(hello.envelope()).unwrap();
    hellos.add("a hello in a byte string", Reject::Schema, wrapped);

    let mut welcomes = Cases::of("document-welcome");
    let welcome = Welcome {
        from: people.coordinator_id(),
        to: people.requester_id(),
        nonce: Nonce::from_bytes([1; 32]),
        software: firn_protocol::codec::Text::new("firn 0.1.0").unwrap(),
        time: crate::samples::NOW,
    };
    let old = people.coordinator.sign(&welcome);
    welcomes.add(
        "a welcome to another hello",
        Reject::SessionMismatch,
        old.as_bytes(),
    );
    [hellos.cases, welcomes.cases].concat()
}

/// The document out of its proof.
trait CloneDocument<T> {
    fn clone_document(&self) -> T;
}

impl<T: Clone> CloneDocument<T> for firn_protocol::envelope::Verified<T> {
    fn clone_document(&self) -> T {
        T::clone(self)
    }
}
