//! A ceremony as a coordinator carries it, honestly; the attacks bend what it carries.

use firn_participant::session::dkg::{AwaitCertificates, AwaitDelivery, AwaitRound1Set};
use firn_protocol::{
    codec::List,
    documents::{Certificate, Plan},
    envelope::Envelope,
    ids::{Flow, Identifier, MessageDigest, Nonce},
    messages::{
        CertificateSet, Delivery, DkgManifest, DkgOpen, DkgRound1, DkgRound1Set, DkgRound2,
        ProvenPackage, SealedPackage, package_tree,
    },
    session::{CeremonySubject, SessionHeader, Subject},
};

use super::{
    people::{CARRIER, number, person},
    world::{Domain, FIRST_EPOCH, World},
};

pub fn header(domain: &Domain, nonce: u8) -> SessionHeader {
    let (plan, _) = domain.plan.read::<Plan>().unwrap();
    SessionHeader {
        flow: Flow::Dkg,
        subject: Subject::Ceremony(CeremonySubject {
            plan: domain.plan_digest(),
            ceremony_id: plan.ceremony_id,
            rules: plan.rules,
        }),
        key_id: domain.key_id(),
        share_version: plan.share_version(),
        epoch: FIRST_EPOCH,
        coordinator: CARRIER.id("coordinator"),
        nonce: Nonce::from_bytes([nonce; 32]),
        members: List::new([1, 2, 3].map(number).to_vec()).unwrap(),
    }
}

pub fn opening(domain: &Domain, header: &SessionHeader) -> DkgOpen {
    DkgOpen {
        header: CARRIER.sign(header),
        plan: domain.plan.clone(),
    }
}

pub fn begin(world: &mut World, nonce: u8) -> Vec<AwaitRound1Set> {
    let domain = &world.domain;
    let open = opening(domain, &header(domain, nonce));
    let members = world.members.iter_mut();
    members
        .map(|member| member.begin(domain, &open, Some(&domain.plan)).unwrap())
        .collect()
}

pub fn round1(machines: &[AwaitRound1Set]) -> Vec<Envelope<DkgRound1>> {
    machines
        .iter()
        .map(|machine| machine.message().clone())
        .collect()
}

pub fn round1_set(messages: Vec<Envelope<DkgRound1>>) -> DkgRound1Set {
    DkgRound1Set {
        messages: List::new(messages).unwrap(),
    }
}

pub fn deal(
    world: &mut World,
    machines: Vec<AwaitRound1Set>,
    set: &DkgRound1Set,
) -> (Vec<DkgRound2>, Vec<AwaitDelivery>) {
    let domain = &world.domain;
    let members = world.members.iter_mut().zip(machines);
    members
        .map(|(member, machine)| member.deal(domain, machine, set).unwrap())
        .unzip()
}

/// What a coordinator delivers to one member.
pub fn delivery(recipient: Identifier, round2: &[DkgRound2]) -> Delivery {
    let manifests = round2.iter().map(|dealt| dealt.manifest.clone()).collect();
    let packages = (1..)
        .map(number)
        .zip(round2)
        .filter(|(sender, _)| *sender != recipient)
        .map(|(sender, dealt)| {
            let place = dealt
                .packages
                .iter()
                .position(|p| p.recipient == recipient)
                .unwrap();
            let tree = package_tree(&dealt.packages).unwrap();
            let path = tree
                .inclusion_proof(place.try_into().unwrap(), tree.size())
                .unwrap();
            let hashes = path
                .hashes()
                .iter()
                .map(|hash| MessageDigest::from_bytes(*hash));
            ProvenPackage {
                sender,
                package: dealt.packages[place].clone(),
                path: List::new(hashes.collect()).unwrap(),
            }
        })
        .collect();
    Delivery {
        manifests: List::new(manifests).unwrap(),
        packages: List::new(packages).unwrap(),
    }
}

pub fn certify(
    world: &mut World,
    machines: Vec<AwaitDelivery>,
    round2: &[DkgRound2],
) -> (Vec<Envelope<Certificate>>, Vec<AwaitCertificates>) {
    let domain = &world.domain;
    let members = world.members.iter_mut().zip(machines);
    members
        .map(|(member, machine)| {
            let delivery = delivery(member.place, round2);
            match member.certify(domain, machine, &delivery) {
                Ok(certified) => certified,
                Err(_) => panic!("an honest ceremony is certified"),
            }
        })
        .unzip()
}

pub fn certificate_set(certificates: Vec<Envelope<Certificate>>) -> CertificateSet {
    CertificateSet {
        certificates: List::new(certificates).unwrap(),
    }
}

/// A ceremony up to everybody's certificate, which nobody has seen of the others yet.
pub fn until_certificates(
    world: &mut World,
    nonce: u8,
) -> (CertificateSet, Vec<AwaitCertificates>) {
    let machines = begin(world, nonce);
    let set = round1_set(round1(&machines));
    let (round2, machines) = deal(world, machines, &set);
    let (certificates, machines) = certify(world, machines, &round2);
    (certificate_set(certificates), machines)
}

/// A whole ceremony.
pub fn make_key(world: &mut World, nonce: u8) -> CertificateSet {
    let (set, machines) = until_certificates(world, nonce);
    for (member, machine) in world.members.iter_mut().zip(machines) {
        member.hold(&world.domain, machine, &set).unwrap();
    }
    set
}

/// A member's round two with other packages, signed by it.
pub fn sealed_again(dealt: &DkgRound2, packages: Vec<SealedPackage>) -> DkgRound2 {
    let signer = dealt.manifest.claimed_signer().unwrap();
    let said = dealt.manifest.clone().verify(&signer).unwrap();
    let tree = package_tree(&packages).unwrap();
    let manifest = DkgManifest {
        packages: tree.root_at(tree.size()).unwrap(),
        ..(*said).clone()
    };
    DkgRound2 {
        manifest: person(said.member).sign(&manifest),
        packages: List::new(packages).unwrap(),
    }
}
