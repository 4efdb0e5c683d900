//! docs/ERRORS.md says of every code what the code says itself.
#![allow(clippy::unwrap_used, reason = "a test states what it expects")]

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
