//! Every bound of the wire in one place. What is over a bound does not decode; the relations
//! between the bounds are asserted when this crate is compiled.

/// Nesting of CBOR items.
pub const MAX_DEPTH: usize = 16;

/// Members of a key. FROST allows more; a ceremony of people does not.
pub const MAX_MEMBERS: usize = 32;

/// Bytes of a PSBT, either version.
pub const MAX_PSBT: usize = 1 << 20;

/// Inputs of one session: each costs a nonce pair, a commitment and a share.
pub const MAX_SESSION_INPUTS: usize = 1_000;

/// Signers of one document (operators, approvers).
pub const MAX_ENDORSEMENTS: usize = 16;

/// Keys of one kind in the Authorities.
pub const MAX_AUTHORITY_KEYS: usize = 64;

/// Groups of approvers.
pub const MAX_GROUPS: usize = 16;

/// Rules in a policy.
pub const MAX_RULES: usize = 64;

/// Scripts in one rule.
pub const MAX_SCRIPTS: usize = 256;

/// Bytes of an output script in a document; consensus allows 10,000, standard scripts have 42.
pub const MAX_SCRIPT: usize = 520;

/// Approvals that travel with a request.
pub const MAX_APPROVALS: usize = 32;

/// Entries of news in one message.
pub const MAX_NEWS: usize = 256;

/// Outpoints in one entry of news.
pub const MAX_NEWS_OUTPOINTS: usize = MAX_SESSION_INPUTS;

/// Keys that one participant announces.
pub const MAX_KEYS: usize = 64;

/// Bytes of a name shown to people.
pub const MAX_NAME: usize = 64;

/// Bytes of a purpose or a reason.
pub const MAX_PURPOSE: usize = 256;

/// Bytes of a sentence about a failure on this machine.
pub const MAX_REASON: usize = 1024;

/// Bytes of a PKCS #10 certificate request.
pub const MAX_CSR: usize = 2 << 10;

/// Members that a coordinator reports about.
pub const MAX_REPORTED: usize = 256;

/// Bytes that a COSE_Sign1 adds to its payload: headers, lengths, key id, signature.
pub const ENVELOPE_OVERHEAD: usize = 128;

/// Bytes of a document that binds digests and names, but no lists.
pub const SMALL_DOCUMENT: usize = 4 << 10;

/// Bytes of a document with a list over the members.
pub const ROSTER_DOCUMENT: usize = 64 << 10;

/// Bytes of an intent: a PSBT and a little.
pub const MAX_INTENT: usize = MAX_PSBT + (4 << 10);

/// Bytes of one member's commitments: 72 for each input, news, heads.
pub const MAX_COMMITMENTS: usize = 512 << 10;

/// Bytes of one member's signature shares: 34 for each input.
pub const MAX_SHARES: usize = 64 << 10;

/// Bytes of a package: the commitments of t members.
pub const MAX_PACKAGE: usize = 10 << 20;

/// Bytes of a message that opens a signing session.
pub const MAX_OPEN: usize = MAX_INTENT + (256 << 10);

/// Bytes of the largest message of a ceremony.
pub const MAX_CEREMONY_MESSAGE: usize = 1 << 20;

/// Bytes of the first message on a connection, and of the answer to it.
pub const MAX_HELLO: usize = 32 << 10;

/// The largest frame of any kind: what a reader must be ready for.
pub const MAX_FRAME: usize = MAX_PACKAGE;

/// Quorums must meet, so 2t > n; with n bounded t is bounded too.
pub const MAX_THRESHOLD: usize = MAX_MEMBERS;

const _: () = {
    assert!(MAX_INTENT > MAX_PSBT);
    assert!(MAX_OPEN > MAX_INTENT + MAX_APPROVALS * SMALL_DOCUMENT);
    assert!(MAX_SHARES > MAX_SESSION_INPUTS * 34);
    // Commitments: two points of 35 bytes and an array head for each input.
    assert!(MAX_COMMITMENTS > MAX_SESSION_INPUTS * 72 + MAX_NEWS * 512);
    assert!(MAX_FRAME >= MAX_OPEN && MAX_FRAME >= MAX_CEREMONY_MESSAGE);
    assert!(MAX_HELLO > MAX_KEYS * 128);
    // Round one of a DKG: a commitment and a sealing key for each member.
    assert!(MAX_CEREMONY_MESSAGE > MAX_MEMBERS * MAX_MEMBERS * (35 + 38));
};
