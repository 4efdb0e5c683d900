//! Frozen vaults of format 1, written by another implementation of the format (Python's `cryptography`):
//! what one version sealed, every later version opens.

use firn_protocol::ids::Identifier;

use super::*;

/// `vault.hdr` and a share file under a key file of 32 bytes 0x07.
const BY_KEY_FILE: [&str; 2] = [
    "4649524e564c5431840102805820000102030405060708090a0b0c0d0e0f10111213141516171819\
    1a1b1c1d1e1f2193763534f46122288459fff9717880d8262e23cf25041cfebda6c29d53b6c367d3\
    a18bf3e2e483de7df36334d33edde2e555db27a62307fc3ae96bbcdd31be",
    "4649524e53485231008d88010258206de0703c3ce6ef662c7d7b48886dfca908c4a5329fd0831889\
    c6a1e6719677cc5820202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e\
    3f582001010101010101010101010101010101010101010101010101010101010101010102582003\
    03030303030303030303030303030303030303030303030303030303030303404142434445464748\
    494a4b65008efbbd93109fc046473cd86e0bb6327ea21e4c36f418358444db3783edf09197b06315\
    5a62347e76fd720b6dc1ba",
];

/// The same under the passphrase, with Argon2id at 19 MiB, 2 passes, 1 lane.
const BY_PASSPHRASE: [&str; 2] = [
    "4649524e564c54318401018183194c0002015820000102030405060708090a0b0c0d0e0f10111213\
    1415161718191a1b1c1d1e1fa69ed7808ec0abdc3ebbdc0857157e4b3f29480b4216bab50ba0cdeb\
    859bcf48e3314ab99149362dfea39d9ff8de3754541ed2827abb9cabb65eb91bf9ae3d4d",
    "4649524e53485231008d8801015820a36488ecad0de5677c6993342f201ed721eea8649e535fc835\
    2e72cda795356c5820202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e\
    3f582001010101010101010101010101010101010101010101010101010101010101010102582003\
    03030303030303030303030303030303030303030303030303030303030303404142434445464748\
    494a4b1247bd01fd3a921ce82c79991a8cad73d71550917b92d1f9f129349121a9aa9461248caaee\
    e36d49e03339d74e6522dd",
];

const PASSPHRASE: &[u8] = b"correct horse battery staple";

fn opens(files: [&str; 2], unlock: impl FnOnce(&Path) -> Unlock) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("vault");
    let label = ShareLabel {
        key_id: KeyId::from_bytes([1; 32]),
        share_version: ShareVersion::new(1),
        member: Identifier::new(2).unwrap(),
        attempt: SessionId::from_bytes([3; 32]),
    };
    let active = folder.join("active");
    ensure_private_folder(&folder).unwrap();
    ensure_private_folder(&active).unwrap();
    let [header, share] = files.map(|file| hex::decode(file).unwrap());
    write_private(&folder.join(HEADER_FILE), &header).unwrap();
    let name = format!("{}-1{SHARE_SUFFIX}", label.key_id);
    write_private(&active.join(name), &share).unwrap();

    let vault = Vault::open(&folder, unlock(temporary.path())).unwrap();
    let opened = vault
        .load_active(label.key_id, label.share_version)
        .unwrap();
    assert_eq!(opened.label, label);
    assert_eq!(*opened.share, [0xab; 32]);
}

#[test]
fn opens_what_another_implementation_sealed_by_key_file() {
    opens(BY_KEY_FILE, |folder| {
        let key = folder.join("key");
        write_private(&key, &[7; 32]).unwrap();
        Unlock::KeyFile(key)
    });
}

#[test]
fn opens_what_another_implementation_sealed_by_passphrase() {
    opens(BY_PASSPHRASE, |_| {
        let bytes = Zeroizing::new(PASSPHRASE.to_vec());
        Unlock::Passphrase(Passphrase::new(bytes).unwrap())
    });
}

#[test]
fn makes_and_opens_a_vault_at_the_usual_costs() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("vault");
    let open = |passphrase: &[u8]| {
        let passphrase = Passphrase::new(Zeroizing::new(passphrase.to_vec()))?;
        Vault::open(&folder, Unlock::Passphrase(passphrase))
    };
    open(PASSPHRASE).unwrap();
    open(PASSPHRASE).unwrap();
    let error = open(b"another passphrase").unwrap_err();
    assert_eq!(error.code(), "wrong_passphrase");
}
