//! A real 2-of-3 group with everything that a request needs, made without any process.

use std::collections::BTreeMap;

use firn_protocol::{
    bitcoin::{
        Child, Network, Sats,
        psbt::PsbtVersion,
        transaction::{OutPoint, ScriptPubKey, Txid},
    },
    codec::{List, Text},
    documents::{Activation, Certificate, Intent, Sealing},
    envelope::{Envelope, Verified},
    ids::{
        BuildDigest, PlanDigest, RequestId, SessionId, ShareVersion, Threshold, TranscriptDigest,
        UnixMillis,
    },
    keys::IdentitySecret,
    sharing::{ActiveSharing, CertifiedSharing, verify_plan},
    threshold::{FrostRng, PublicShares, SigningShare, frost_identifier},
};
use frost_secp256k1_tr::keys::{IdentifierList, KeyPackage, generate_with_dealer};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use crate::{
    authority::{self, PlanTerms, RuleTerms},
    clock::now,
    domain::{Domain, DomainTerms},
    payment::{Coin, Payment, own_scripts},
};

pub(crate) const NETWORK: Network = Network::Regtest;

pub(crate) struct World {
    pub(crate) active: ActiveSharing,
    pub(crate) shares: Vec<SigningShare>,
    pub(crate) members: Vec<IdentitySecret>,
    pub(crate) coordinator: IdentitySecret,
    pub(crate) intent: Verified<Intent>,
    pub(crate) request_id: RequestId,
    pub(crate) rng: ChaCha20Rng,
    _folder: tempfile::TempDir,
}

pub(crate) fn world() -> World {
    let mut rng = ChaCha20Rng::from_seed([7; 32]);
    let folder = tempfile::tempdir().unwrap();
    let terms = DomainTerms {
        trust_domain: "test.firn".parse().unwrap(),
        operators: &["ada"],
        operators_needed: 1,
        requester: "treasury",
        coordinator: "relay",
        members: 3,
    };
    let domain = Domain::create(folder.path(), &terms, now()).unwrap();
    let to = ScriptPubKey::new([&[0x00, 0x14][..], &[7; 20]].concat());
    let most = Sats::new(1_000_000).unwrap();
    let rules = authority::rules(&RuleTerms {
        network: NETWORK,
        destinations: vec![to.clone()],
        outflow: most,
        output: most,
        fee: most,
        fee_per_kvb: most,
        allow_all: false,
    })
    .unwrap();
    let plan = authority::plan(PlanTerms {
        network: NETWORK,
        purpose: "test",
        threshold: 2,
        roster: domain.roster().unwrap(),
        authorities: domain.authorities_digest(),
        rules: &rules,
        expires: UnixMillis::new(u64::MAX),
    })
    .unwrap();
    let operator = || vec![domain.operators()[0].secret().unwrap()];
    let plan = authority::endorse(&plan, &operator()).unwrap();
    let (authorities, digest) = (domain.authorities(), domain.authorities_digest());
    let plan = verify_plan(plan, authorities, digest).unwrap();

    let (secret, package) =
        generate_with_dealer(3, 2, IdentifierList::Default, FrostRng::new(&mut rng)).unwrap();
    let identifiers: Vec<_> = plan.roster.iter().map(|entry| entry.identifier).collect();
    let threshold = Threshold::new(2, 3).unwrap();
    let public = PublicShares::from_frost(threshold, &identifiers, &package).unwrap();
    let keys: BTreeMap<_, _> = secret
        .into_iter()
        .map(|(id, share)| (id, KeyPackage::try_from(share).unwrap()))
        .collect();
    let shares = identifiers
        .iter()
        .map(|member| {
            let id = frost_identifier(*member).unwrap();
            SigningShare::new(*member, *keys[&id].signing_share(), &public).unwrap()
        })
        .collect();
    let members: Vec<_> = domain
        .members()
        .iter()
        .map(|m| m.secret().unwrap())
        .collect();
    let certificates: Vec<_> = identifiers
        .iter()
        .zip(&members)
        .map(|(member, secret)| {
            let certificate = Certificate {
                member: *member,
                plan: PlanDigest::from_bytes(plan.digest()),
                attempt: SessionId::from_bytes([1; 32]),
                transcript: TranscriptDigest::from_bytes([2; 32]),
                group_key: *public.group_key(),
                verifying_shares: List::new(public.verifying_shares().unwrap()).unwrap(),
                share_version: ShareVersion::new(1),
                sealing: Sealing::KeyFile,
                software: Text::new("test").unwrap(),
                build: BuildDigest::from_bytes([3; 32]),
            };
            Envelope::sign(&certificate, secret).unwrap()
        })
        .collect();
    let sharing = CertifiedSharing::verify(plan, &certificates).unwrap();
    let policy =
        authority::first_policy(sharing.key_id(), rules, &domain.policy_authority().unwrap())
            .unwrap();
    let signed = policy
        .clone()
        .verify(&authorities.policy_authority)
        .unwrap();
    let activation = authority::activation(&sharing, &signed, digest);
    let activation = authority::endorse::<Activation>(&activation, &operator()).unwrap();
    let documents = authority::key_documents(&sharing, policy, activation).unwrap();
    let active = ActiveSharing::verify(&documents, authorities, digest).unwrap();

    let coin = |index: u8| Coin {
        outpoint: OutPoint {
            txid: Txid::new([index; 32]),
            vout: 0,
        },
        value: Sats::new(60_000).unwrap(),
        child: Child::new(0, index.into()).unwrap(),
    };
    let payment = Payment {
        coins: vec![coin(0), coin(1)],
        to,
        amount: Sats::new(70_000).unwrap(),
        fee: Sats::new(500).unwrap(),
        change: Child::new(1, 0).unwrap(),
        version: PsbtVersion::V2,
    };
    let own = own_scripts(public.group_key()).unwrap();
    let requester = domain.requester().secret().unwrap();
    let psbt = payment.to_psbt(&own).unwrap();
    let intent = authority::intent(NETWORK, sharing.key_id(), &psbt, &requester).unwrap();
    World {
        intent: intent.verify(&requester.identity()).unwrap(),
        coordinator: domain.coordinator().secret().unwrap(),
        request_id: RequestId::from_bytes([5; 32]),
        active,
        shares,
        members,
        rng,
        _folder: folder,
    }
}
