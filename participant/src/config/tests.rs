//! What the configuration takes and refuses, by the line.

use std::fs;

use super::*;

fn load(text: &[u8]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("participant.toml");
    fs::write(&path, text).unwrap();
    Config::load(&path)
}

/// The refusal of the example with one text replaced, and the line that holds `marker` there.
fn refusal(from: &str, to: &str) -> (usize, String) {
    assert!(EXAMPLE.contains(from), "{from:?}");
    match load(EXAMPLE.replace(from, to).as_bytes()).unwrap_err() {
        ConfigError::Invalid { line, what, .. } => (line, what),
        error @ ConfigError::File(_) => panic!("{error}"),
    }
}

fn line_of(marker: &str) -> usize {
    let at = EXAMPLE.lines().position(|line| line.starts_with(marker));
    at.unwrap().saturating_add(1)
}

#[test]
fn reads_the_example_and_resolves_its_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("participant.toml");
    fs::write(&path, EXAMPLE).unwrap();
    let config = Config::load(&path).unwrap();
    assert_eq!(config.data_dir, folder.path().join("data"));
    assert_eq!(config.anchor_dir, Path::new("/mnt/anchor/firn-a"));
    assert_eq!(config.control_socket, Path::new("/run/firn/control.sock"));
    assert_eq!(config.tls.key, folder.path().join("tls.key"));
    assert_eq!(
        config.vault,
        VaultConfig::KeyFile(folder.path().join("vault.key"))
    );
    assert_eq!(config.coordinators[0].address.port(), 7600);
    assert_eq!(config.log, LogFormat::Auto);
}

#[test]
fn has_the_documented_defaults() {
    let mut text: String = EXAMPLE
        .lines()
        .filter(|line| {
            let given = [
                "anchor_dir",
                "control_socket",
                "log",
                "look_every_ms",
                "warn_before_hours",
            ];
            !given.iter().any(|field| line.starts_with(field))
        })
        .take_while(|line| *line != "[limits]")
        .fold(String::new(), |text, line| text + line + "\n");
    let config = load(text.as_bytes()).unwrap();
    assert_eq!(config.anchor_dir, config.data_dir.join("anchor"));
    assert_eq!(config.control_socket, config.data_dir.join("control.sock"));
    assert_eq!(config.log, LogFormat::Auto);
    assert_eq!(config.tls.look_every_ms, 30_000);
    assert_eq!(config.tls.warn_before_hours, None);
    let limits = LimitsConfig {
        max_clock_skew_ms: 2_000,
        max_epoch_jump: 1_000,
        max_grant_life_ms: 86_400_000,
        step_timeout_ms: 10_000,
    };
    assert_eq!(config.limits, limits);
    text.push_str("[limits]\n");
    assert_eq!(load(text.as_bytes()).unwrap().limits, limits);
}

#[test]
fn refuses_an_unknown_field_in_every_table_and_names_its_line() {
    for (table, field) in [
        ("log = \"auto\"", "log = \"auto\"\ncolour = 1"),
        ("roots = ", "cipher = \"x\"\nroots = "),
        ("file = ", "iterations = 1\nfile = "),
        ("address = ", "weight = 1\naddress = "),
        ("max_epoch_jump = ", "max_epoch = 1\nmax_epoch_jump = "),
    ] {
        let (line, what) = refusal(table, field);
        assert!(what.contains("unknown field"), "{what}");
        let start = table.split(' ').next().unwrap();
        let added = usize::from(table.starts_with("log"));
        assert_eq!(line, line_of(start) + added, "{table}");
    }
}

#[test]
fn refuses_what_the_types_allow_but_the_rules_do_not() {
    for (from, to, marker) in [
        ("/participant/a", "/requester/a", "name"),
        ("/participant/a", "/participant/A", "name"),
        ("log = \"auto\"", "log = \"loud\"", "log"),
        ("00\"", "0\"", "authorities_digest"),
        ("00\"", "0g\"", "authorities_digest"),
        ("\"key-file\"\nfile", "\"passphrase\"\nfile", "[vault]"),
        ("\"key-file\"\nfile", "\"credential\"\nfile", "[vault]"),
        ("file = \"vault.key\"", "", "[vault]"),
        ("unlock = \"key-file\"", "unlock = \"none\"", "unlock"),
        ("/coordinator/main", "/participant/main", "[[coordinators]]"),
        (":7600", "", "address"),
        (":7600", ":0", "address"),
        (":7600", ":+76", "address"),
        (":7600", ":65536", "address"),
        ("= 2000", "= 99", "max_clock_skew_ms"),
        ("= 2000", "= 60001", "max_clock_skew_ms"),
        ("= 2000", "= -1", "max_clock_skew_ms"),
        ("= 1000\n", "= 0\n", "max_epoch_jump"),
        ("= 86400000", "= 59999", "max_grant_life_ms"),
        ("= 86400000", "= 2592000001", "max_grant_life_ms"),
        ("= 30000", "= 99", "look_every_ms"),
        ("= 336", "= 0", "warn_before_hours"),
        ("= 336", "= 87601", "warn_before_hours"),
        ("= 10000", "= 0", "step_timeout_ms"),
        ("= 10000", "= \"soon\"", "step_timeout_ms"),
    ] {
        let (line, what) = refusal(from, to);
        assert_eq!(line, line_of(marker), "{to}: {what}");
    }
}

#[test]
fn refuses_a_coordinator_twice_and_none() {
    let twice = format!(
        "{}\n[[coordinators]]\nname = \"spiffe://custody.example/coordinator/main\"\n\
         address = \"[2001:db8::1]:7600\"\n",
        EXAMPLE
    );
    let error = load(twice.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("stands twice"), "{error}");
    let none: String = EXAMPLE
        .lines()
        .filter(|line| {
            !line.starts_with("[[coordinators]]")
                && !line.starts_with("address")
                && !line.contains("/coordinator/main")
        })
        .fold("coordinators = []\n".to_owned(), |text, line| {
            text + line + "\n"
        });
    let error = load(none.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("1 to 64"), "{error}");
    assert_eq!(error.code(), "config_invalid");
}

#[test]
fn needs_every_field_that_has_no_default() {
    for field in [
        "name =",
        "data_dir",
        "identity_key",
        "authorities =",
        "authorities_digest",
        "certificate",
        "key =",
        "roots",
        "unlock",
        "address",
    ] {
        let mut missing = false;
        let text = EXAMPLE.lines().fold(String::new(), |text, line| {
            if !missing && line.starts_with(field) {
                missing = true;
                text
            } else {
                text + line + "\n"
            }
        });
        let error = load(text.as_bytes()).unwrap_err();
        assert!(
            missing && error.to_string().contains("missing field"),
            "{field}: {error}"
        );
    }
}

#[test]
fn says_the_line_of_broken_toml_and_of_broken_utf8() {
    for (text, line) in [
        (&b"name = \"a\"\nx = ["[..], 2),
        (b"\n\nname", 3),
        (b"name = \"a\"\n\n\xff", 3),
    ] {
        let error = load(text).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("participant.toml:{line}: ")),
            "{error}"
        );
    }
    assert_eq!(
        load(&vec![b'#'; FILE_LIMIT + 1]).unwrap_err().code(),
        "file_too_large"
    );
    let error = Config::load(Path::new("/nowhere/participant.toml")).unwrap_err();
    assert_eq!(error.code(), "file_missing");
}

#[test]
fn reads_an_address_in_its_three_forms() {
    for (text, host) in [
        ("localhost:1", "localhost"),
        ("192.0.2.1:65535", "192.0.2.1"),
        ("[2001:db8::1]:7600", "2001:db8::1"),
    ] {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.host(), host);
        assert_eq!(address.to_string(), text);
    }
    for text in [
        "",
        ":1",
        "a",
        "a:",
        "2001:db8::1:7600",
        "[a]:1",
        "a b:1",
        "[::1]",
        "a/b:1",
    ] {
        assert!(text.parse::<Address>().is_err(), "{text:?}");
    }
}
