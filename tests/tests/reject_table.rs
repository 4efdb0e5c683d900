//! docs/ERRORS.md says of every code what the code says itself, and names those that never travel.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test states what it expects"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use firn_protocol::reject::Reject;

const PAGE: &str = include_str!("../../docs/ERRORS.md");

fn row(code: Reject) -> String {
    format!(
        "| {} | `{}` | {} | {} | {} |",
        code.number(),
        code.name(),
        code.class(),
        code.meaning(),
        code.advice()
    )
}

#[test]
fn the_page_has_the_row_of_every_code_and_no_other() {
    let rows: Vec<&str> = PAGE
        .lines()
        .filter(|line| {
            line.starts_with("| ") && line.chars().nth(2).is_some_and(|c| c.is_ascii_digit())
        })
        .collect();
    let wanted: Vec<String> = Reject::ALL.iter().copied().map(row).collect();
    for row in &wanted {
        assert!(
            rows.contains(&row.as_str()),
            "docs/ERRORS.md lacks this row:\n{row}"
        );
    }
    assert_eq!(
        rows.len(),
        wanted.len(),
        "docs/ERRORS.md has rows of no code"
    );
}

/// Codes of errors on a machine have no table of their own: each error type has a function for them.
#[test]
fn the_page_names_every_local_code_and_no_other() {
    let mut coded = BTreeSet::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for function in text.split("fn code(").skip(1) {
            let body = function.split("\n    }\n").next().unwrap();
            if ["-> &'static str {", "-> &str {"]
                .iter()
                .any(|returned| body.contains(returned))
            {
                coded.extend(body.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    let (_, section) = PAGE
        .split_once("\n## Codes of the daemons and the tool\n")
        .unwrap();
    let lists: String = section
        .lines()
        .skip_while(|line| !line.starts_with("**"))
        .collect();
    let named: BTreeSet<_> = lists
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    assert!(coded.len() > 100, "{coded:?}");
    assert_eq!(named, coded);
}

/// The sources of the crates, without their tests.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = ["protocol", "participant", "coordinator", "ceremony"];
    let mut folders: Vec<_> = crates.iter().map(|name| root.join(name)).collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
                files.push(path);
            }
        }
    }
    files
}
