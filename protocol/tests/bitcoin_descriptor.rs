//! Which script a child of a group key has: BIP-328 and BIP-341's vectors, and miniscript.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(clippy::arithmetic_side_effects, missing_docs)]

use std::str::FromStr;

use bitcoin::secp256k1::{PublicKey, Secp256k1, SecretKey};
use firn_protocol::{
    bitcoin::{
        Child, ExtendedKey, Network, ScriptPubKey, descriptor,
        descriptor::checksum,
        extended_key::{CHAIN_CODE, taproot_tweak},
    },
    ids::GroupKey,
};
use miniscript::{Descriptor, DescriptorPublicKey};
use serde_json::Value;

#[test]
fn makes_the_extended_keys_of_bip328() {
    let file: Value = serde_json::from_str(include_str!("data/bip328.json")).unwrap();
    let vectors = file.as_array().unwrap();
    assert_eq!(vectors.len(), 3);
    for vector in vectors {
        let group = GroupKey::from_hex(vector["aggregate_pubkey"].as_str().unwrap()).unwrap();
        let key = ExtendedKey::of_group(&group).unwrap();
        let xpub = vector["xpub"].as_str().unwrap();
        assert_eq!(key.to_xpub(Network::Mainnet), xpub);
        let theirs: bitcoin::bip32::Xpub = xpub.parse().unwrap();
        assert_eq!(theirs.chain_code.to_bytes(), CHAIN_CODE);
        assert_eq!(theirs.fingerprint().to_bytes(), key.fingerprint());
        let again = ExtendedKey::from_xpub(xpub, key.fingerprint(), Vec::new()).unwrap();
        assert_eq!(again, key);
    }
}

#[test]
fn tweaks_and_scripts_are_those_of_bip341() {
    let file: Value = serde_json::from_str(include_str!("data/bip341-wallet.json")).unwrap();
    let mut without_tree = 0;
    for vector in file["scriptPubKey"].as_array().unwrap() {
        let script = hex::decode(vector["expected"]["scriptPubKey"].as_str().unwrap()).unwrap();
        let script = ScriptPubKey::new(script);
        let address = vector["expected"]["bip350Address"].as_str().unwrap();
        assert_eq!(Network::Mainnet.address(&script).as_deref(), Some(address));
        assert_eq!(Network::Mainnet.script(address), Some(script.clone()));
        assert_eq!(Network::Signet.script(address), None);
        let key = hex::decode(vector["given"]["internalPubkey"].as_str().unwrap()).unwrap();
        let tweaked = taproot_tweak(&key.try_into().unwrap()).unwrap();
        if vector["given"]["scriptTree"].is_null() {
            without_tree += 1;
            let intermediary = &vector["intermediary"];
            assert_eq!(
                hex::encode(tweaked.tweak),
                intermediary["tweak"].as_str().unwrap()
            );
            assert_eq!(ScriptPubKey::taproot(&tweaked.output_key), script);
        } else {
            assert_ne!(ScriptPubKey::taproot(&tweaked.output_key), script);
        }
    }
    assert_eq!(without_tree, 1);
}

#[test]
fn twenty_groups_have_the_scripts_that_miniscript_derives() {
    let secp = Secp256k1::new();
    let mut odd = 0;
    for number in 1..=20_u8 {
        let secret = SecretKey::from_slice(&[number; 32]).unwrap();
        let public = PublicKey::from_secret_key(&secp, &secret).serialize();
        odd += usize::from(public[0] == 3);
        let group = GroupKey::from_bytes(public);
        let key = ExtendedKey::of_group(&group).unwrap();
        for (network, theirs) in [
            (Network::Mainnet, bitcoin::Network::Bitcoin),
            (Network::Testnet, bitcoin::Network::Testnet),
            (Network::Signet, bitcoin::Network::Signet),
            (Network::Regtest, bitcoin::Network::Regtest),
        ] {
            let text = descriptor(&group, network).unwrap();
            let (body, sum) = text.split_once('#').unwrap();
            assert_eq!(checksum(body).as_deref(), Some(sum));
            // Parsing checks the checksum.
            let parsed = Descriptor::<DescriptorPublicKey>::from_str(&text).unwrap();
            assert_eq!(parsed.to_string(), text);
            let branches = parsed.into_single_descriptors().unwrap();
            assert_eq!(branches.len(), 2);
            for (branch, descriptor) in (0_u32..).zip(&branches) {
                for index in [0, 1, 17, (1 << 31) - 1] {
                    let ours = key.derive(Child::new(branch, index).unwrap()).unwrap();
                    let definite = descriptor.at_derivation_index(index).unwrap();
                    let script = definite.script_pubkey();
                    assert_eq!(ours.script().as_bytes(), script.as_bytes());
                    assert_eq!(
                        network.address(&ours.script()),
                        Some(definite.address(theirs).unwrap().to_string())
                    );
                }
            }
        }
    }
    assert!(odd > 3 && odd < 17, "{odd} odd keys");
}

#[test]
fn the_additive_tweak_leads_from_the_group_secret_to_the_childs() {
    let secp = Secp256k1::new();
    for number in 1..=20_u8 {
        let secret = SecretKey::from_slice(&[number; 32]).unwrap();
        let group = GroupKey::from_bytes(PublicKey::from_secret_key(&secp, &secret).serialize());
        for branch in [0, 1] {
            let child = Child::new(branch, u32::from(number)).unwrap();
            let derived = ExtendedKey::of_group(&group)
                .unwrap()
                .derive(child)
                .unwrap();
            let tweak = bitcoin::secp256k1::Scalar::from_be_bytes(*derived.additive_tweak());
            let own = secret.add_tweak(&tweak.unwrap()).unwrap();
            let public = PublicKey::from_secret_key(&secp, &own);
            assert_eq!(public.serialize(), *derived.internal_key());
            assert_eq!(
                public.x_only_public_key().0.serialize(),
                derived.x_only_internal_key()
            );
        }
    }
}
