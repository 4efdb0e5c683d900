//! The vault's rules, one test each, on real folders.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use firn_protocol::ids::Identifier;
use tempfile::TempDir;

use super::*;
use crate::private_files::write_unfinished;

const GOOD: &str = "correct horse battery staple";

struct Place {
    temporary: TempDir,
}

impl Place {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        make_key_file(&temporary.path().join("key")).unwrap();
        Self { temporary }
    }

    fn key_file(&self) -> PathBuf {
        self.temporary.path().join("key")
    }

    fn folder(&self) -> PathBuf {
        self.temporary.path().join("vault")
    }

    fn open(&self) -> Result<Vault, VaultError> {
        Vault::open(&self.folder(), Unlock::KeyFile(self.key_file()))
    }

    fn open_with(&self, passphrase: &str) -> Result<Vault, VaultError> {
        let bytes = Zeroizing::new(passphrase.as_bytes().to_vec());
        let passphrase = Passphrase::new(bytes)?;
        Vault::open_for_tests(&self.folder(), Unlock::Passphrase(passphrase))
    }

    fn only_file(&self, stage: &str) -> PathBuf {
        let files = names(&self.folder().join(stage)).unwrap();
        assert_eq!(files.len(), 1);
        files[0].clone()
    }
}

fn label(attempt: u8) -> ShareLabel {
    ShareLabel {
        key_id: KeyId::from_bytes([1; 32]),
        share_version: ShareVersion::new(1),
        member: Identifier::new(2).unwrap(),
        attempt: SessionId::from_bytes([attempt; 32]),
    }
}

fn share(byte: u8) -> Zeroizing<[u8; 32]> {
    Zeroizing::new([byte; 32])
}

fn promote(vault: &Vault, label: &ShareLabel) -> Result<(), VaultError> {
    vault.promote(label.key_id, label.share_version, label.attempt)
}

fn pending(vault: &Vault, label: &ShareLabel) -> Result<OpenedShare, VaultError> {
    vault.load_pending(label.key_id, label.share_version, label.attempt)
}

fn active(vault: &Vault, label: &ShareLabel) -> Result<OpenedShare, VaultError> {
    vault.load_active(label.key_id, label.share_version)
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

#[test]
fn gives_back_what_it_kept_after_every_way_of_unlocking() {
    let place = Place::new();
    let credentials = place.temporary.path().join("credentials");
    fs::create_dir(&credentials).unwrap();
    write(&credentials.join("vault-key"), &[7; 32]);
    fs::set_permissions(credentials.join("vault-key"), Permissions::from_mode(0o440)).unwrap();
    for (number, method) in Sealing::ALL.iter().enumerate() {
        let folder = place.temporary.path().join(format!("vault-{number}"));
        let open = || {
            let unlock = match method {
                Sealing::Passphrase => Unlock::Passphrase(
                    Passphrase::new(Zeroizing::new(GOOD.as_bytes().to_vec())).unwrap(),
                ),
                Sealing::KeyFile => Unlock::KeyFile(place.key_file()),
                Sealing::Credential => {
                    Unlock::Credential(Credential::within(&credentials, "vault-key").unwrap())
                }
            };
            Vault::open_for_tests(&folder, unlock).unwrap()
        };
        assert!(!Vault::exists(&folder));
        open().store_pending(label(1), &share(9)).unwrap();
        assert!(Vault::exists(&folder));
        let vault = open();
        assert_eq!(vault.method(), *method);
        let opened = pending(&vault, &label(1)).unwrap();
        assert_eq!(opened.label, label(1));
        assert_eq!(*opened.share, *share(9));
    }
}

#[test]
fn says_a_wrong_passphrase_and_a_wrong_key_at_once() {
    let place = Place::new();
    place.open_with(GOOD).unwrap();
    let error = place.open_with("correct horse battery stable").unwrap_err();
    assert_eq!(error.code(), "wrong_passphrase");
    assert_eq!(place.open().unwrap_err().code(), "vault_other_method");

    let place = Place::new();
    place.open().unwrap();
    write(&place.key_file(), &[8; 32]);
    assert_eq!(place.open().unwrap_err().code(), "wrong_key");
}

#[test]
fn takes_as_a_key_only_32_bytes_that_are_not_all_zero() {
    for (bytes, code) in [
        (vec![8; 31], "vault_key_invalid"),
        (vec![0; 32], "vault_key_invalid"),
        (vec![], "vault_key_invalid"),
        (vec![8; 33], "file_too_large"),
    ] {
        let place = Place::new();
        write(&place.key_file(), &bytes);
        assert_eq!(place.open().unwrap_err().code(), code, "{bytes:?}");
        assert!(!Vault::exists(&place.folder()));
    }
    let place = Place::new();
    fs::remove_file(place.key_file()).unwrap();
    assert_eq!(place.open().unwrap_err().code(), "file_missing");
}

#[test]
fn never_overwrites_a_key_file() {
    let place = Place::new();
    let before = fs::read(place.key_file()).unwrap();
    let error = make_key_file(&place.key_file()).unwrap_err();
    assert_eq!(error.code(), "vault_key_exists");
    assert_eq!(fs::read(place.key_file()).unwrap(), before);
}

#[test]
fn refuses_a_credential_name_that_leaves_its_folder() {
    let folder = Path::new("/run/credentials/firn");
    assert!(Credential::within(folder, "vault-key").is_ok());
    for name in ["", ".", "..", "../key", "a/b", "/etc/key", ".hidden", "a\0"] {
        let error = Credential::within(folder, name).unwrap_err();
        assert_eq!(error.code(), "credential_missing", "{name:?}");
    }
    assert!(Credential::within(Path::new(""), "vault-key").is_err());
}

#[test]
fn refuses_wide_modes_of_every_folder_and_file() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    promote(&vault, &label(1)).unwrap();
    vault
        .store_pending(
            ShareLabel {
                share_version: ShareVersion::new(2),
                ..label(2)
            },
            &share(2),
        )
        .unwrap();
    let folder = place.folder();
    let paths = [
        (folder.clone(), 0o750),
        (folder.join("pending"), 0o755),
        (folder.join("active"), 0o701),
        (folder.join(HEADER_FILE), 0o644),
        (place.only_file("pending"), 0o640),
        (place.only_file("active"), 0o602),
        (place.key_file(), 0o640),
    ];
    for (path, wide) in paths {
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, Permissions::from_mode(wide)).unwrap();
        let error = place.open().unwrap_err();
        assert_eq!(error.code(), "file_permissions", "{}", path.display());
        assert!(!error.advice().is_empty());
        fs::set_permissions(&path, before).unwrap();
        place.open().unwrap();
    }
}

#[test]
fn refuses_every_flipped_bit_and_every_length_of_a_share_file() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let path = place.only_file("pending");
    let good = fs::read(&path).unwrap();
    assert!(good.len() <= share_file::FILE_LIMIT);
    for byte in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[byte] ^= 1 << bit;
            write(&path, &bad);
            let code = pending(&vault, &label(1)).unwrap_err().code();
            assert!(
                code == "vault_damaged" || code == "vault_cannot_open",
                "byte {byte} bit {bit}: {code}"
            );
        }
    }
    for length in 0..good.len() {
        write(&path, &good[..length]);
        let code = pending(&vault, &label(1)).unwrap_err().code();
        assert_eq!(code, "vault_damaged", "{length}");
    }
    for more in [1, 16, 1000] {
        let mut long = good.clone();
        long.resize(good.len() + more, 0);
        write(&path, &long);
        let code = pending(&vault, &label(1)).unwrap_err().code();
        assert!(
            code == "vault_damaged" || code == "file_too_large",
            "{code}"
        );
    }
    write(&path, &good);
    assert_eq!(*pending(&vault, &label(1)).unwrap().share, *share(1));
}

#[test]
fn tells_a_sealed_text_that_was_altered_from_a_file_of_the_wrong_form() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let path = place.only_file("pending");
    let good = fs::read(&path).unwrap();
    // The tag, the ciphertext, the nonce; the magic, the length.
    for (byte, code) in [
        (good.len() - 1, "vault_cannot_open"),
        (good.len() - 17, "vault_cannot_open"),
        (good.len() - 49, "vault_cannot_open"),
        (0, "vault_damaged"),
        (9, "vault_damaged"),
    ] {
        let mut bad = good.clone();
        bad[byte] ^= 1;
        write(&path, &bad);
        assert_eq!(
            pending(&vault, &label(1)).unwrap_err().code(),
            code,
            "{byte}"
        );
    }
}

#[test]
fn refuses_every_flipped_bit_and_every_length_of_the_header() {
    let place = Place::new();
    place.open_with(GOOD).unwrap();
    let path = place.folder().join(HEADER_FILE);
    let good = fs::read(&path).unwrap();
    for byte in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[byte] ^= 1 << bit;
            write(&path, &bad);
            let code = place.open_with(GOOD).unwrap_err().code();
            assert_eq!(code, "vault_damaged", "byte {byte} bit {bit}");
        }
    }
    for length in 0..good.len() {
        write(&path, &good[..length]);
        let code = place.open_with(GOOD).unwrap_err().code();
        assert_eq!(code, "vault_damaged", "{length}");
    }
}

#[test]
fn believes_no_costs_out_of_bounds_even_where_the_checksum_fits() {
    let place = Place::new();
    place.open_with(GOOD).unwrap();
    let bytes = Zeroizing::new(GOOD.as_bytes().to_vec());
    let passphrase = Unlock::Passphrase(Passphrase::new(bytes).unwrap());
    // The vault was made with the costs of tests.
    let error = Vault::open(&place.folder(), passphrase).unwrap_err();
    assert_eq!(error.code(), "vault_costs_out_of_bounds");
}

#[test]
fn opens_no_share_of_another_vault_or_in_another_place() {
    let (place, other) = (Place::new(), Place::new());
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let theirs = other.open().unwrap();
    theirs.store_pending(label(1), &share(2)).unwrap();
    fs::copy(other.only_file("pending"), place.only_file("pending")).unwrap();
    let error = pending(&vault, &label(1)).unwrap_err();
    assert_eq!(error.code(), "vault_damaged");

    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let path = place.only_file("pending");
    vault.store_pending(label(2), &share(2)).unwrap();
    let second = vault.pending_path(label(2).key_id, label(2).share_version, label(2).attempt);
    fs::copy(&path, &second).unwrap();
    let error = pending(&vault, &label(2)).unwrap_err();
    assert_eq!(error.code(), "vault_damaged");
}

#[test]
fn needs_its_header_when_there_are_shares() {
    let place = Place::new();
    place
        .open()
        .unwrap()
        .store_pending(label(1), &share(1))
        .unwrap();
    fs::remove_file(place.folder().join(HEADER_FILE)).unwrap();
    assert_eq!(place.open().unwrap_err().code(), "vault_header_missing");
}

#[test]
fn seals_the_same_share_differently_each_time() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(0xab)).unwrap();
    let first = fs::read(place.only_file("pending")).unwrap();
    vault
        .discard_pending(label(1).key_id, label(1).share_version, label(1).attempt)
        .unwrap();
    vault.store_pending(label(1), &share(0xab)).unwrap();
    let second = fs::read(place.only_file("pending")).unwrap();
    assert_ne!(first[first.len() - 60..], second[second.len() - 60..]);
    assert!(!first.windows(32).any(|window| window == *share(0xab)));
}

#[test]
fn keeps_the_same_share_twice_and_never_another_in_its_place() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let error = vault.store_pending(label(1), &share(2)).unwrap_err();
    assert_eq!(error.code(), "share_conflict");
    assert_eq!(*pending(&vault, &label(1)).unwrap().share, *share(1));

    promote(&vault, &label(1)).unwrap();
    let error = vault.store_pending(label(2), &share(2)).unwrap_err();
    assert_eq!(error.code(), "share_conflict");
    assert_eq!(*active(&vault, &label(1)).unwrap().share, *share(1));
}

#[test]
fn promotes_once_and_says_so_again() {
    let place = Place::new();
    let vault = place.open().unwrap();
    assert_eq!(
        promote(&vault, &label(1)).unwrap_err().code(),
        "share_missing"
    );
    vault.store_pending(label(1), &share(1)).unwrap();
    assert_eq!(
        active(&vault, &label(1)).unwrap_err().code(),
        "share_missing"
    );
    for _ in 0..3 {
        promote(&vault, &label(1)).unwrap();
        assert_eq!(*active(&vault, &label(1)).unwrap().share, *share(1));
        assert_eq!(
            pending(&vault, &label(1)).unwrap_err().code(),
            "share_missing"
        );
    }
    assert_eq!(
        promote(&vault, &label(2)).unwrap_err().code(),
        "share_conflict"
    );
}

#[test]
fn promotes_after_a_crash_that_left_both_names() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let path = place.only_file("pending");
    let bytes = fs::read(&path).unwrap();
    promote(&vault, &label(1)).unwrap();
    drop(vault);
    write_private(&path, &bytes).unwrap();

    let vault = place.open().unwrap();
    promote(&vault, &label(1)).unwrap();
    assert_eq!(*active(&vault, &label(1)).unwrap().share, *share(1));
    assert_eq!(vault.list().unwrap().shares, [(Stage::Active, label(1))]);
}

#[test]
fn never_promotes_what_does_not_open_or_over_another_attempt() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    vault.store_pending(label(2), &share(2)).unwrap();
    let path = vault.pending_path(label(1).key_id, label(1).share_version, label(1).attempt);
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    write(&path, &bad);
    assert_eq!(
        promote(&vault, &label(1)).unwrap_err().code(),
        "vault_cannot_open"
    );
    write(&path, &good);
    promote(&vault, &label(1)).unwrap();
    assert_eq!(
        promote(&vault, &label(2)).unwrap_err().code(),
        "share_conflict"
    );
    assert_eq!(*active(&vault, &label(1)).unwrap().share, *share(1));
}

#[test]
fn reads_only_whole_files_wherever_a_crash_came() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    let path = place.only_file("pending");
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for length in 0..=whole.len() {
        let left = write_unfinished(&path, &whole[..length]).unwrap();
        let vault = place.open().unwrap();
        let listing = vault.list().unwrap();
        assert!(listing.shares.is_empty() && listing.refused.is_empty());
        assert_eq!(listing.unfinished, [left]);
        assert_eq!(
            pending(&vault, &label(1)).unwrap_err().code(),
            "share_missing"
        );
    }
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(3)).unwrap();
    assert_eq!(*pending(&vault, &label(1)).unwrap().share, *share(3));
    assert!(vault.list().unwrap().unfinished.is_empty());
}

#[test]
fn discards_a_pending_share_and_what_a_crash_left_of_it_and_no_active_one() {
    let place = Place::new();
    let vault = place.open().unwrap();
    let discard =
        |label: ShareLabel| vault.discard_pending(label.key_id, label.share_version, label.attempt);
    vault.store_pending(label(1), &share(1)).unwrap();
    let path = place.only_file("pending");
    write_unfinished(&path, b"half").unwrap();
    discard(label(1)).unwrap();
    discard(label(1)).unwrap();
    assert!(names(&place.folder().join("pending")).unwrap().is_empty());

    vault.store_pending(label(2), &share(2)).unwrap();
    promote(&vault, &label(2)).unwrap();
    discard(label(2)).unwrap();
    assert_eq!(*active(&vault, &label(2)).unwrap().share, *share(2));
}

#[test]
fn lists_good_bad_and_strange_files_apart() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(1)).unwrap();
    promote(&vault, &label(1)).unwrap();
    let bad = place.folder().join("pending").join("bad.share");
    write_private(&bad, b"nothing").unwrap();
    let strange = place.folder().join("active").join("notes.txt");
    write_private(&strange, b"nothing").unwrap();
    // One bad file stops no other.
    let vault = place.open().unwrap();
    let listing = vault.list().unwrap();
    assert_eq!(listing.shares, [(Stage::Active, label(1))]);
    assert_eq!(listing.refused[0].0, bad);
    assert_eq!(listing.refused[0].1.code(), "vault_damaged");
    assert_eq!(listing.strangers, [strange]);
}

#[test]
fn shows_nothing_of_a_share() {
    let place = Place::new();
    let vault = place.open().unwrap();
    vault.store_pending(label(1), &share(0xab)).unwrap();
    let opened = pending(&vault, &label(1)).unwrap();
    for text in [format!("{vault:?}"), format!("{opened:?}")] {
        assert!(!text.contains("171") && !text.contains("abab"), "{text}");
    }
}
