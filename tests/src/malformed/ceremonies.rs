//! Documents that contradict themselves or each other, and ceremonies that are not the accepted one.

use firn_protocol::{
    bitcoin::Network,
    codec::{self, List, Maybe},
    documents::{Authorities, Plan, Policy, Rules},
    envelope::Document,
    ids::{AuthoritiesDigest, AuthoritiesVersion, Flow, Threshold, TranscriptDigest, UnixMillis},
    messages::{
        CertificateSet, DkgOpen, DkgRound1Set, ProofOpen, RunCeremony, ToCeremony, ToMember,
    },
    reject::Reject,
    session::SessionHeader,
};

use super::{Case, Cases};
use crate::samples::{NOW, World, id, member, rules};

pub(super) fn cases(world: &World) -> Vec<Case> {
    let mut all = unsound(world);
    all.extend(plans(world));
    all.extend(attempts(world));
    all.extend(proofs(world));
    all.extend(dealings(world));
    all.extend(complaints(world));
    all
}

fn endorsed<T: Document>(world: &World, document: &T) -> Vec<u8> {
    codec::encode(&world.people.endorse(document)).unwrap()
}

fn altered<T: Clone>(document: &T, alter: impl FnOnce(&mut T)) -> T {
    let mut document = document.clone();
    alter(&mut document);
    document
}

fn reordered<T: Clone, const MAX: usize>(list: &List<T, MAX>, places: &[usize]) -> List<T, MAX> {
    List::new(places.iter().map(|place| list[*place].clone()).collect()).unwrap()
}

fn unsound(world: &World) -> Vec<Case> {
    let mut plans = Cases::of("document-plan");
    let plan: &Plan = &world.plan;
    let roster = &plan.roster;
    let with = |alter: &dyn Fn(&mut Plan)| endorsed(world, &altered(plan, alter));
    let mut unsound = |name, bytes| plans.add(name, Reject::UnsoundDocument, bytes);
    unsound(
        "a roster out of order",
        with(&|p| p.roster = reordered(roster, &[1, 0, 2])),
    );
    unsound(
        "a member twice",
        with(&|p| p.roster = reordered(roster, &[0, 1, 1])),
    );
    let changed = |change: &dyn Fn(&mut firn_protocol::documents::RosterEntry)| {
        with(&|p| {
            let mut entries = p.roster.to_vec();
            change(&mut entries[2]);
            p.roster = List::new(entries).unwrap();
        })
    };
    unsound(
        "one name for two members",
        changed(&|m| m.name = roster[0].name.clone()),
    );
    unsound(
        "one identity for two members",
        changed(&|m| m.identity = roster[0].identity),
    );
    unsound(
        "one machine for two members",
        changed(&|m| m.tls_name = roster[0].tls_name.clone()),
    );
    unsound(
        "a threshold above the members",
        with(&|p| {
            p.threshold = Threshold::new(4, 4).unwrap();
        }),
    );
    unsound(
        "quorums that need not meet",
        with(&|p| {
            let mut entries = p.roster.to_vec();
            let mut fourth = entries[2].clone();
            fourth.identifier = member(4);
            fourth.name = "m4".parse().unwrap();
            fourth.tls_name = id("participant", "m4");
            fourth.identity = world.people.stranger.key();
            entries.push(fourth);
            p.roster = List::new(entries).unwrap();
        }),
    );
    unsound(
        "a plan without members",
        with(&|p| p.roster = List::empty()),
    );

    let mut policies = Cases::of("document-policy");
    let policy = |rules: Rules| {
        let policy = Policy {
            key_id: world.key_id(),
            version: world.key.sharing.policy().version,
            rules,
        };
        world
            .people
            .policy_authority
            .sign(&policy)
            .as_bytes()
            .to_vec()
    };
    for (name, places) in [
        ("rules out of order", [1, 0, 2, 3, 4]),
        ("a rule twice", [0, 1, 2, 2, 4]),
        ("rules backwards", [4, 3, 2, 1, 0]),
    ] {
        let rules = reordered(&rules(), &places);
        policies.add(name, Reject::UnsoundDocument, policy(rules));
    }

    let mut authorities = Cases::of("document-authorities");
    let with =
        |alter: &dyn Fn(&mut Authorities)| endorsed(world, &altered(&world.authorities, alter));
    let mut unsound = |name, bytes| authorities.add(name, Reject::UnsoundDocument, bytes);
    unsound(
        "operators of whom none is needed",
        with(&|a| a.operators.needed = 0),
    );
    unsound(
        "operators of whom too many are needed",
        with(&|a| a.operators.needed = 4),
    );
    let keys = &world.authorities.operators.keys;
    unsound(
        "an operator twice",
        with(&|a| a.operators.keys = reordered(keys, &[0, 1, 1])),
    );
    let requesters = &world.authorities.requesters;
    unsound(
        "a requester twice",
        with(&|a| a.requesters = reordered(requesters, &[0, 0])),
    );
    unsound(
        "one key for two roles",
        with(&|a| {
            let mut holders = a.coordinators.to_vec();
            holders[0].key = world.people.requester.key();
            a.coordinators = List::new(holders).unwrap();
        }),
    );
    unsound(
        "a second version of nothing",
        with(&|a| a.version = AuthoritiesVersion::new(2)),
    );
    unsound(
        "a first version after another",
        with(&|a| {
            a.previous = Maybe(Some(AuthoritiesDigest::from_bytes([1; 32])));
        }),
    );
    [plans.cases, policies.cases, authorities.cases].concat()
}

fn plans(world: &World) -> Vec<Case> {
    let plan: &Plan = &world.plan;
    let mut cases = Cases::of("document-plan");
    let with = |alter: &dyn Fn(&mut Plan)| endorsed(world, &altered(plan, alter));
    cases.add(
        "other Authorities",
        Reject::AuthoritiesMismatch,
        with(&|p| {
            p.authorities = AuthoritiesDigest::from_bytes([1; 32]);
        }),
    );
    cases.add(
        "a plan whose time is over",
        Reject::PlanExpired,
        with(&|p| p.expires = NOW),
    );
    cases.add(
        "a plan for real money",
        Reject::PlanNotAccepted,
        with(&|p| {
            p.network = Network::Mainnet;
        }),
    );
    let mut run = Cases::of("to-ceremony-run");
    let plan = altered(plan, |p| p.expires = UnixMillis::new(NOW.value() - 1));
    let plan = world.people.endorse(&plan);
    let message = codec::encode(&ToCeremony::Run(RunCeremony { plan })).unwrap();
    run.add("a plan whose time is over", Reject::PlanExpired, message);
    [cases.cases, run.cases].concat()
}

fn attempts(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("to-member-dkg-open");
    let people = &world.people;
    let header: &SessionHeader = &world.dealing.header;
    let message = |header, plan| {
        let header = people.coordinator.sign(&header);
        codec::encode(&ToMember::DkgOpen(DkgOpen { header, plan })).unwrap()
    };
    let with = |alter: &dyn Fn(&mut SessionHeader)| {
        message(altered(header, alter), world.plan_endorsed.clone())
    };
    let other = people.endorse(&altered(&*world.plan, |p| p.network = Network::Mainnet));
    cases.add(
        "another plan",
        Reject::PlanNotAccepted,
        message(header.clone(), other),
    );
    let mismatch = Reject::SessionMismatch;
    cases.add(
        "an attempt at signing",
        mismatch,
        with(&|h| h.flow = Flow::Sign),
    );
    cases.add(
        "an attempt at another epoch",
        mismatch,
        with(&|h| {
            h.epoch = firn_protocol::ids::Epoch::new(6);
        }),
    );
    cases.add(
        "an attempt at another key",
        mismatch,
        with(&|h| {
            h.key_id = firn_protocol::ids::KeyId::from_bytes([1; 32]);
        }),
    );
    cases.add(
        "an attempt without a member",
        Reject::SessionMembers,
        with(&|h| {
            h.members = List::new(vec![member(1), member(2)]).unwrap();
        }),
    );
    cases.add(
        "members out of order",
        Reject::SessionMembers,
        with(&|h| {
            h.members = List::new(vec![member(2), member(1), member(3)]).unwrap();
        }),
    );
    let stranger = people.stranger.sign(header);
    let open = DkgOpen {
        header: stranger,
        plan: world.plan_endorsed.clone(),
    };
    let message = codec::encode(&ToMember::DkgOpen(open)).unwrap();
    cases.add("a stranger's attempt", Reject::UnknownCoordinator, message);
    cases.cases
}

fn proofs(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("to-member-proof-open");
    let header: &SessionHeader = &world.proofs[0].header;
    let with = |alter: &dyn Fn(&mut SessionHeader)| {
        let header = world.people.coordinator.sign(&altered(header, alter));
        codec::encode(&ToMember::ProofOpen(ProofOpen { header })).unwrap()
    };
    let unexpected = Reject::UnexpectedMessage;
    cases.add(
        "a proof as an attempt",
        unexpected,
        with(&|h| h.flow = Flow::Dkg),
    );
    cases.add(
        "a proof of a request",
        unexpected,
        with(&|h| {
            h.subject = world.opening.header.subject.clone();
        }),
    );
    cases.add(
        "a proof by everybody",
        Reject::SessionMembers,
        with(&|h| {
            h.members = List::new(vec![member(1), member(2), member(3)]).unwrap();
        }),
    );
    cases.add(
        "a proof by others",
        Reject::NotAMember,
        with(&|h| {
            h.members = List::new(vec![member(2), member(3)]).unwrap();
        }),
    );
    cases.add(
        "a proof by a stranger",
        Reject::SessionMembers,
        with(&|h| {
            h.members = List::new(vec![member(1), member(9)]).unwrap();
        }),
    );
    cases.cases
}

fn dealings(world: &World) -> Vec<Case> {
    let people = &world.people;
    let second = &people.members[1];
    let mut set = Cases::of("to-member-dkg-round1-set");
    let with = |alter: &dyn Fn(&mut firn_protocol::messages::DkgRound1)| {
        let mut messages = world.dealing.round1_set().messages.into_vec();
        messages[1] = second.sign(&altered(&*world.dealing.round1[1], alter));
        let messages = List::new(messages).unwrap();
        codec::encode(&ToMember::DkgRound1Set(DkgRound1Set { messages })).unwrap()
    };
    let commitment = Reject::DkgCommitment;
    set.add(
        "a commitment of a higher threshold",
        commitment,
        with(&|m| {
            let points = [m.commitment.to_vec(), vec![m.commitment[0]]].concat();
            m.commitment = List::new(points).unwrap();
        }),
    );
    set.add(
        "a commitment of a lower threshold",
        commitment,
        with(&|m| {
            m.commitment = List::new(vec![m.commitment[0]]).unwrap();
        }),
    );
    set.add(
        "a sealing key too few",
        commitment,
        with(&|m| {
            m.sealing_keys = List::new(vec![m.sealing_keys[0]]).unwrap();
        }),
    );
    set.add(
        "sealing keys out of order",
        commitment,
        with(&|m| {
            m.sealing_keys = reordered(&m.sealing_keys, &[1, 0]);
        }),
    );
    set.add(
        "a word of another attempt",
        Reject::SessionMismatch,
        with(&|m| {
            m.attempt = world.broken.header.session_id();
        }),
    );
    set.add(
        "a word for somebody else",
        Reject::SessionMismatch,
        with(&|m| m.member = member(3)),
    );
    let two = List::new(world.dealing.round1_set().messages[..2].to_vec()).unwrap();
    let two = codec::encode(&ToMember::DkgRound1Set(DkgRound1Set { messages: two })).unwrap();
    set.add("a word missing", Reject::SessionMembers, two);

    let mut delivery = Cases::of("to-member-delivery");
    let good = world.dealing.delivery(member(1));
    let message = |delivery| codec::encode(&ToMember::Delivery(delivery)).unwrap();
    let mut lied = good.clone();
    let mut manifests = lied.manifests.to_vec();
    let said = manifests[1].clone().verify(&second.key()).unwrap();
    let other = altered(&*said, |m| m.round1 = reordered(&m.round1, &[0, 0, 2]));
    manifests[1] = second.sign(&other);
    lied.manifests = List::new(manifests).unwrap();
    delivery.add(
        "another round one was seen",
        Reject::DkgEquivocation,
        message(lied),
    );
    let mut swapped = good.clone();
    swapped.packages = reordered(&good.packages, &[1, 0]);
    delivery.add(
        "packages out of order",
        Reject::SessionMembers,
        message(swapped),
    );
    let mut other = good.clone();
    let mut packages = other.packages.to_vec();
    packages[0].path = packages[1].path.clone();
    other.packages = List::new(packages).unwrap();
    delivery.add(
        "a proof of another package",
        Reject::PackageDigest,
        message(other),
    );
    let mut own = good;
    let mut manifests = own.manifests.to_vec();
    manifests[0] = people.members[0].sign(&altered(&*said, |m| m.member = member(1)));
    own.manifests = List::new(manifests).unwrap();
    delivery.add(
        "one's own manifest changed",
        Reject::PackageAltered,
        message(own),
    );

    let mut certificates = Cases::of("to-member-certificate-set");
    let with = |alter: &dyn Fn(&mut firn_protocol::documents::Certificate)| {
        let mut all = world.documents.certificates.to_vec();
        all[1] = second.sign(&altered(&*world.certified.certificates()[1], alter));
        let certificates = List::new(all).unwrap();
        codec::encode(&ToMember::CertificateSet(CertificateSet { certificates })).unwrap()
    };
    let mismatch = Reject::CertificateMismatch;
    certificates.add(
        "another transcript",
        mismatch,
        with(&|c| {
            c.transcript = TranscriptDigest::from_bytes([1; 32]);
        }),
    );
    certificates.add(
        "a certificate for somebody else",
        mismatch,
        with(&|c| c.member = member(3)),
    );
    certificates.add(
        "verifying shares out of order",
        mismatch,
        with(&|c| {
            c.verifying_shares = reordered(&c.verifying_shares, &[1, 0, 2]);
        }),
    );
    let two = List::new(world.documents.certificates[..2].to_vec()).unwrap();
    let two = codec::encode(&ToMember::CertificateSet(CertificateSet {
        certificates: two,
    }));
    certificates.add("a certificate missing", mismatch, two.unwrap());
    [set.cases, delivery.cases, certificates.cases].concat()
}

fn complaints(world: &World) -> Vec<Case> {
    let mut cases = Cases::of("document-complaint");
    let [first, second, _] = &world.people.members;
    let good = world.broken.complaint(member(1), member(2));
    let signed = |complaint| first.sign(&complaint).as_bytes().to_vec();
    let about_third = world.broken.complaint(member(1), member(3));
    cases.add(
        "a complaint about a good share",
        Reject::DkgShare,
        signed(about_third.clone()),
    );
    cases.add("a complaint with another key", Reject::DkgShare, {
        signed(altered(&good, |c| c.secret = about_third.secret.clone()))
    });
    cases.add(
        "a complaint about another's share",
        Reject::SessionMembers,
        signed(altered(&good, |c| c.package.package.recipient = member(3))),
    );
    cases.add("a complaint for somebody else", Reject::SessionMembers, {
        signed(altered(&good, |c| c.member = member(2)))
    });
    cases.add("a complaint of another attempt", Reject::SessionMismatch, {
        signed(altered(&good, |c| {
            c.attempt = world.dealing.header.session_id()
        }))
    });
    cases.add(
        "a complaint about what nobody signed",
        Reject::PackageDigest,
        {
            signed(altered(&good, |c| {
                c.package.package.encapsulated = about_third.package.package.encapsulated
            }))
        },
    );
    cases.add("the accused's own complaint", Reject::UnknownSigner, {
        second.sign(&good).as_bytes().to_vec()
    });
    cases.cases
}
