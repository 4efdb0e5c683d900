use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::{EXAMPLE, FILE_NAME, Profile, ProfileError};

fn load(text: &str) -> Result<Profile, ProfileError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE_NAME), text).unwrap();
    Profile::load(folder.path())
}

#[test]
fn reads_the_example_and_takes_paths_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    fs::write(&path, EXAMPLE).unwrap();
    let profile = Profile::load(folder.path()).unwrap();
    assert_eq!(profile, Profile::load(&path).unwrap());
    assert_eq!(profile.tls.key, folder.path().join("tls/key.pem"));
    let names: Vec<_> = profile
        .coordinators
        .iter()
        .map(|c| c.name.name().as_str())
        .collect();
    assert_eq!(names, ["relay-1", "relay-2"]);
    assert_eq!(
        profile.coordinators[1].address.host(),
        "relay-2.custody.example"
    );
    assert_eq!(profile.coordinators[1].address.port(), 7443);
}

#[test]
fn what_is_written_is_read_back() {
    let profile = load(EXAMPLE).unwrap();
    assert_eq!(load(&profile.to_toml().unwrap()).unwrap(), profile);
}

#[test]
fn refuses_with_file_and_line() {
    let cases: &[(&str, &str, usize)] = &[
        ("requester/treasury", "coordinator/treasury", 5),
        ("name = \"spiffe", "name = \"spoffe", 5),
        ("authorities_digest = \"00", "authorities_digest = \"0", 12),
        ("identity_key", "identity_kay", 8),
        ("key = \"tls/key.pem\"", "cay = \"tls/key.pem\"", 17),
        ("coordinator/relay-1", "participant/relay-1", 21),
        ("coordinator/relay-2", "coordinator/relay-1", 25),
        (
            "custody.example/coordinator/relay-2",
            "other.example/coordinator/relay-2",
            25,
        ),
        (
            "relay-2.custody.example:7443",
            "relay-2.custody.example",
            27,
        ),
    ];
    for (from, to, line) in cases {
        assert!(EXAMPLE.contains(from), "{from}");
        match load(&EXAMPLE.replacen(from, to, 1)) {
            Err(ProfileError::Invalid {
                path,
                line: found,
                what,
            }) => {
                assert_eq!(found, *line, "{to}: {what}");
                assert!(path.ends_with(FILE_NAME));
            }
            other => panic!("{to}: {other:?}"),
        }
    }
}

#[test]
fn refuses_a_profile_without_a_coordinator() {
    let text = EXAMPLE.split("[[coordinators]]").next().unwrap();
    let text = format!("coordinators = []\n{text}");
    assert!(matches!(
        load(&text),
        Err(ProfileError::Invalid { line: 1, .. })
    ));
}

#[test]
fn refuses_a_private_key_that_others_may_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE_NAME), EXAMPLE).unwrap();
    let profile = Profile::load(folder.path()).unwrap();
    let key = &profile.identity_key;
    fs::write(key, format!("{}\n", "07".repeat(32))).unwrap();
    let mode = |mode| fs::set_permissions(key, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    assert_eq!(profile.secret().err().unwrap().code(), "file_permissions");
    mode(0o600);
    profile.secret().unwrap();
    fs::write(key, "07\n").unwrap();
    assert_eq!(profile.secret().err().unwrap().code(), "bad_file");
    fs::remove_file(key).unwrap();
    assert_eq!(profile.secret().err().unwrap().code(), "file_missing");
    assert_eq!(
        Profile::load(Path::new("/nowhere/at/all"))
            .err()
            .unwrap()
            .code(),
        "file_missing"
    );
}
