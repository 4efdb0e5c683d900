//! What is known of a request, by key and request id and run.

use super::*;

fn known(ledger: &Ledger, key_id: KeyId, request: u8) -> Option<(RequestProgress, u32, bool)> {
    let request_id = RequestId::from_bytes([request; 32]);
    let known = ledger.view().known_request(key_id, request_id).unwrap()?;
    let has_receipt = known.receipt.0.is_some();
    Some((known.progress, known.open_attempts, has_receipt))
}

#[test]
fn two_keys_know_nothing_of_each_others_requests() {
    const OTHER: KeyId = KeyId::from_bytes([11; 32]);
    let mut ledger = Ledger::active();
    ledger.activate(OTHER);
    ledger.complete(20);
    assert_eq!(known(&ledger, OTHER, 9), None);
    let other = |session: u8| {
        open_with(session, |open| {
            open.opened.key_id = OTHER;
            open.opened.intent = IntentDigest::from_bytes([81; 32]);
        })
    };
    ledger.ask(other(30)).unwrap();
    let completed = Some((RequestProgress::Completed, 0, true));
    assert_eq!(known(&ledger, KEY, 9), completed);
    assert_eq!(
        known(&ledger, OTHER, 9),
        Some((RequestProgress::Open, 1, false))
    );
    ledger.ask(release(30)).unwrap();
    let released = Some((RequestProgress::Released, 1, false));
    assert_eq!(known(&ledger, OTHER, 9), released);
    assert_eq!(known(&ledger, KEY, 9), completed);
    for key_id in [KEY, OTHER] {
        assert_eq!(known(&ledger, key_id, 99), None);
    }
}

#[test]
fn attempts_of_an_earlier_run_are_dead_and_a_released_one_stays_so() {
    let mut ledger = Ledger::active();
    ledger.ask(open(20)).unwrap();
    ledger.ask(open(21)).unwrap();
    assert_eq!(
        known(&ledger, KEY, 9),
        Some((RequestProgress::Open, 2, false))
    );
    ledger.start();
    assert_eq!(
        known(&ledger, KEY, 9),
        Some((RequestProgress::Open, 0, false))
    );
    ledger.ask(open(22)).unwrap();
    assert_eq!(
        known(&ledger, KEY, 9),
        Some((RequestProgress::Open, 1, false))
    );
    ledger.ask(release(22)).unwrap();
    ledger.start();
    let released = Some((RequestProgress::Released, 0, false));
    assert_eq!(known(&ledger, KEY, 9), released);
    ledger.ask(open(23)).unwrap();
    ledger.ask(end(23)).unwrap();
    assert_eq!(known(&ledger, KEY, 9), released);
}
