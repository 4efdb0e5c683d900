//! Members whose clocks differ: the session is refused, and nothing else comes of it.

use firn_participant::session::Refusing;
use firn_protocol::{ids::UnixMillis, reject::Reject};

use super::{
    people::MEMBERS,
    signing::{package, said, sent},
    world::{NOW, SKEW_MS, STEP_MS, World},
};

const DAY_MS: u64 = 86_400_000;

/// What member 1 says to a package in which member 2's clock says this.
fn refused(world: &mut World, request: u8, theirs: u64) -> Option<Refusing> {
    let draft = world.draft(request, 60_000 + u64::from(request));
    let mut sessions = world.open(&draft.signed());
    let mut envelopes = sent(&sessions);
    let mut commitments = (*said(&envelopes[1])).clone();
    commitments.standing.time = UnixMillis::new(theirs);
    envelopes[1] = MEMBERS[1].sign(&commitments);
    let session = sessions.remove(0);
    let good = package(&draft, &envelopes);
    let released = world.members[0].release(&world.domain, session, &good);
    released.err()
}

#[test]
fn a_member_whose_clock_differs_by_more_than_is_allowed_gets_no_share_and_no_blame() {
    let mut world = World::new();
    let now = NOW.value();
    let skew = Some(Refusing::from(Reject::ClockSkew));
    for (request, (theirs, expected)) in (1..).zip([
        (now + DAY_MS, skew),
        (now - DAY_MS, skew),
        (now + SKEW_MS + 1, skew),
        (now + SKEW_MS, None),
        // A session may have been begun elsewhere as long ago as a step may take.
        (now - STEP_MS - SKEW_MS, None),
        (now - STEP_MS - SKEW_MS - 1, skew),
        (u64::MAX, skew),
        (0, skew),
        (now, None),
    ]) {
        let size = world.members[0].count("Released");
        assert_eq!(refused(&mut world, request, theirs), expected, "{theirs}");
        let released = world.members[0].count("Released") - size;
        assert_eq!(released, usize::from(expected.is_none()), "{theirs}");
    }
}

#[test]
fn time_that_passes_before_the_package_comes_is_no_skew() {
    let mut world = World::new();
    let draft = world.draft(1, 60_000);
    let mut sessions = world.open(&draft.signed());
    let good = package(&draft, &sent(&sessions));
    let session = sessions.remove(0);
    world.domain.now = NOW.plus(STEP_MS);
    let released = world.members[0].release(&world.domain, session, &good);
    assert!(released.is_ok());
}
