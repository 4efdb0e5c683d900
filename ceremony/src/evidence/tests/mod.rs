//! One honest answer of a real 2-of-3 group, and every way to bend it that a liar could try.

pub(crate) mod world;

use firn_protocol::{
    codec::{List, Maybe},
    documents::{Checkpoint, Completed, InputSignature, Outcome, Receipt},
    envelope::Envelope,
    ids::{
        Epoch, Flow, Identifier, Nonce, PackageDigest, RequestId, SessionId, Signature,
        SignatureShare, UnixMillis,
    },
    keys::{IdentityKey, IdentitySecret},
    merkle::{MerkleRoot, TreeSize},
    messages::{
        Commitment, Commitments, News, PackageBody, RequestSigned, ShareList, SigningRecord,
        Standing, input_digest,
    },
    reject::Reject,
    session::{RequestSubject, SessionHeader, Subject},
    signable::Signable,
    threshold::{NoncePair, SigningList, aggregate},
};

use self::world::{NETWORK, World, world};
use super::{CheckedSigning, SigningTerms, check_signed};
use crate::clock::fresh_identity;

/// What a liar changes; every other part stays as it was, signed by whom it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    Stored,
    SignatureFlipped,
    SignaturesSwapped,
    SignatureLeftOut,
    NoReceipt,
    ReceiptTwice,
    ReceiptByAnother,
    ReceiptOfAnotherRequest,
    ReceiptWithOtherSignatures,
    OtherSession,
    HeaderByStranger,
    HeaderOfAnotherRequest,
    CommitmentByAnother,
    CommitmentsExchanged,
    PackageByStranger,
    PackageOfOtherLists,
    ShareFlipped,
    SharesThatMakeUpForEachOther,
    SharesForAnotherPackage,
    ShareLeftOut,
}

fn first(world: &World) -> [Identifier; 2] {
    let members = world.active.certified().public().members();
    [members[0], members[1]]
}

fn standing(secret: &IdentitySecret) -> Standing {
    let checkpoint = Checkpoint {
        size: TreeSize::new(1),
        root: MerkleRoot::empty(),
        time: UnixMillis::new(1),
    };
    Standing {
        checkpoint: Envelope::sign(&checkpoint, secret).unwrap(),
        witnessed: List::empty(),
        time: UnixMillis::new(1),
    }
}

fn flipped(signature: Signature) -> Signature {
    let mut bytes = *signature.as_bytes();
    bytes[63] ^= 1;
    Signature::from_bytes(bytes)
}

/// The next scalar up or down: a byte at `limit` carries over to the one before it.
fn stepped(share: SignatureShare, limit: u8, step: impl Fn(u8) -> u8) -> SignatureShare {
    let mut bytes = *share.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let carries = *byte == limit;
        *byte = step(*byte);
        if !carries {
            break;
        }
    }
    SignatureShare::from_bytes(bytes)
}

fn answer(world: &mut World, lie: Lie) -> RequestSigned {
    let certified = world.active.certified();
    let public = certified.public();
    let signable = Signable::of_intent(
        &world.intent,
        certified.key_id(),
        NETWORK,
        public.group_key(),
    )
    .unwrap();
    let chosen = first(world);
    let stranger = fresh_identity().unwrap();
    let other_request = RequestId::from_bytes([6; 32]);
    let header = SessionHeader {
        flow: Flow::Sign,
        subject: Subject::Request(RequestSubject {
            activation: world.active.activation_digest(),
            request_id: if lie == Lie::HeaderOfAnotherRequest {
                other_request
            } else {
                world.request_id
            },
            intent: signable.intent_digest(),
            policy: world.active.policy_digest(),
        }),
        key_id: certified.key_id(),
        share_version: certified.share_version(),
        epoch: Epoch::new(1),
        coordinator: "spiffe://test.firn/coordinator/relay".parse().unwrap(),
        nonce: Nonce::from_bytes([8; 32]),
        members: List::new(chosen.to_vec()).unwrap(),
    };
    let carrier = if lie == Lie::HeaderByStranger {
        &stranger
    } else {
        &world.coordinator
    };
    let header = Envelope::sign(&header, carrier).unwrap();
    let header = header.verify(&carrier.identity()).unwrap();
    let session = header.session_id();

    let mut nonces: Vec<Vec<NoncePair>> = Vec::new();
    let mut committed: Vec<Vec<Commitment>> = Vec::new();
    for share in &world.shares[..2] {
        let pairs = signable
            .items()
            .iter()
            .map(|_| NoncePair::commit(share, &mut world.rng).unwrap());
        let (pairs, commitments) = pairs.unzip();
        nonces.push(pairs);
        committed.push(commitments);
    }
    let mut commitments: Vec<_> = chosen
        .iter()
        .zip(&committed)
        .zip(&world.members)
        .map(|((member, inputs), secret)| {
            let word = Commitments {
                session,
                member: *member,
                inputs: List::new(inputs.clone()).unwrap(),
                standing: standing(secret),
                news: News {
                    from: TreeSize::new(0),
                    to: TreeSize::new(0),
                    entries: List::empty(),
                },
            };
            let signer = if lie == Lie::CommitmentByAnother {
                &world.members[2]
            } else {
                secret
            };
            Envelope::sign(&word, signer).unwrap()
        })
        .collect();
    if lie == Lie::CommitmentsExchanged {
        commitments.reverse();
    }

    let mut digests = Vec::new();
    let mut made: Vec<Vec<SignatureShare>> = vec![Vec::new(), Vec::new()];
    let mut signatures = Vec::new();
    let mut rest: Vec<_> = nonces.into_iter().map(Vec::into_iter).collect();
    for (place, item) in signable.items().iter().enumerate() {
        let list: Vec<_> = chosen
            .iter()
            .zip(&committed)
            .map(|(member, inputs)| (*member, inputs[place]))
            .collect();
        digests.push(input_digest(&list).unwrap());
        let list = SigningList::new(&chosen, &list, &item.message).unwrap();
        for (signer, pairs) in rest.iter_mut().enumerate() {
            let pair = pairs.next().unwrap();
            let share = &world.shares[signer];
            made[signer].push(pair.sign(&list, share, item.address.as_ref()).unwrap());
        }
        let of_all: Vec<_> = chosen
            .iter()
            .zip(&made)
            .map(|(member, shares)| (*member, shares[place]))
            .collect();
        signatures.push(InputSignature {
            input: item.input,
            signature: aggregate(&list, &of_all, &item.key(public).unwrap()).unwrap(),
        });
    }
    if lie == Lie::PackageOfOtherLists {
        digests.swap(0, 1);
    }
    let package = PackageBody {
        session,
        inputs: List::new(digests).unwrap(),
    };
    let carrier = if lie == Lie::PackageByStranger {
        &stranger
    } else {
        carrier
    };
    let package = Envelope::sign(&package, carrier).unwrap();
    let package = package.verify(&carrier.identity()).unwrap();
    if lie == Lie::SharesThatMakeUpForEachOther {
        made[0][0] = stepped(made[0][0], 0xff, |byte| byte.wrapping_add(1));
        made[1][0] = stepped(made[1][0], 0x00, |byte| byte.wrapping_sub(1));
    }
    if lie == Lie::ShareFlipped {
        let mut bytes = *made[0][0].as_bytes();
        bytes[31] ^= 1;
        made[0][0] = SignatureShare::from_bytes(bytes);
    }
    let mut shares: Vec<_> = chosen
        .iter()
        .zip(&made)
        .zip(&world.members)
        .map(|((member, shares), secret)| {
            let word = ShareList {
                session,
                member: *member,
                package: PackageDigest::from_bytes(if lie == Lie::SharesForAnotherPackage {
                    [9; 32]
                } else {
                    package.digest()
                }),
                shares: List::new(shares.clone()).unwrap(),
                checkpoint: standing(secret).checkpoint,
            };
            Envelope::sign(&word, secret).unwrap()
        })
        .collect();
    if lie == Lie::ShareLeftOut {
        shares.pop();
    }
    if lie == Lie::SignatureFlipped {
        signatures[1].signature = flipped(signatures[1].signature);
    }
    if lie == Lie::SignaturesSwapped {
        let (a, b) = (signatures[0].signature, signatures[1].signature);
        (signatures[0].signature, signatures[1].signature) = (b, a);
    }
    if lie == Lie::SignatureLeftOut {
        signatures.pop();
    }

    let mut receipts: Vec<_> = chosen
        .iter()
        .zip(&world.members)
        .map(|(member, secret)| {
            let mut completed = signatures.clone();
            if lie == Lie::ReceiptWithOtherSignatures {
                completed[0].signature = flipped(completed[0].signature);
            }
            let receipt = Receipt {
                key_id: certified.key_id(),
                request_id: if lie == Lie::ReceiptOfAnotherRequest {
                    other_request
                } else {
                    world.request_id
                },
                intent: signable.intent_digest(),
                policy: world.active.policy_digest(),
                epoch: Epoch::new(1),
                session,
                outcome: Outcome::Completed(Completed {
                    signatures: List::new(completed).unwrap(),
                }),
                position: 1,
                checkpoint: standing(secret).checkpoint,
                time: UnixMillis::new(1),
            };
            let signer = if lie == Lie::ReceiptByAnother {
                &world.members[2]
            } else {
                secret
            };
            (*member, Envelope::sign(&receipt, signer).unwrap())
        })
        .collect();
    if lie == Lie::NoReceipt {
        receipts.clear();
    }
    if lie == Lie::ReceiptTwice {
        receipts[1] = receipts[0].clone();
    }
    let evidence = SigningRecord {
        header: header.envelope().clone(),
        commitments: List::new(commitments).unwrap(),
        package: package.envelope().clone(),
        shares: List::new(shares).unwrap(),
    };
    RequestSigned {
        session: if lie == Lie::OtherSession {
            SessionId::from_bytes([4; 32])
        } else {
            session
        },
        signatures: List::new(signatures).unwrap(),
        receipts: List::new(receipts).unwrap(),
        evidence: Maybe((lie != Lie::Stored).then_some(evidence)),
    }
}

fn check(world: &mut World, lie: Lie) -> Result<CheckedSigning, Reject> {
    let answer = answer(world, lie);
    judge(world, &answer)
}

fn judge(world: &World, answer: &RequestSigned) -> Result<CheckedSigning, Reject> {
    let coordinators: [IdentityKey; 1] = [world.coordinator.identity()];
    let terms = SigningTerms {
        sharing: &world.active,
        coordinators: &coordinators,
        intent: &world.intent,
        request_id: world.request_id,
        epoch: Epoch::new(1),
    };
    check_signed(answer, &terms)
}

#[test]
fn believes_an_honest_answer_and_a_stored_one() {
    let mut world = world();
    let members = first(&world).to_vec();
    let fresh = check(&mut world, Lie::None).unwrap();
    assert_eq!((&fresh.signers, &fresh.receipts), (&members, &members));
    assert!(!fresh.is_stored);
    let stored = check(&mut world, Lie::Stored).unwrap();
    assert!(stored.is_stored);
    assert_eq!(stored.receipts, members);
}

#[test]
fn refuses_every_lie_by_its_name() {
    let mut world = world();
    for (lie, code) in [
        (Lie::SignatureFlipped, Reject::FinalSignature),
        (Lie::SignaturesSwapped, Reject::FinalSignature),
        (Lie::SignatureLeftOut, Reject::InputCount),
        (Lie::NoReceipt, Reject::PackageMembers),
        (Lie::ReceiptTwice, Reject::PackageMembers),
        (Lie::ReceiptByAnother, Reject::UnknownSigner),
        (Lie::ReceiptOfAnotherRequest, Reject::GrantRequestMismatch),
        (Lie::ReceiptWithOtherSignatures, Reject::FinalSignature),
        (Lie::OtherSession, Reject::SessionMismatch),
        (Lie::HeaderByStranger, Reject::UnknownSigner),
        (Lie::HeaderOfAnotherRequest, Reject::SessionMismatch),
        (Lie::CommitmentByAnother, Reject::UnknownSigner),
        (Lie::CommitmentsExchanged, Reject::UnknownSigner),
        (Lie::PackageByStranger, Reject::UnknownSigner),
        (Lie::PackageOfOtherLists, Reject::PackageDigest),
        (Lie::ShareFlipped, Reject::FinalSignature),
        (Lie::SharesThatMakeUpForEachOther, Reject::FinalSignature),
        (Lie::SharesForAnotherPackage, Reject::PackageDigest),
        (Lie::ShareLeftOut, Reject::PackageMembers),
    ] {
        assert_eq!(check(&mut world, lie), Err(code), "{lie:?}");
    }
}

#[test]
fn refuses_valid_signatures_with_the_evidence_of_others() {
    let mut world = world();
    let (mut one, other) = (answer(&mut world, Lie::None), answer(&mut world, Lie::None));
    assert_ne!(one.signatures, other.signatures);
    assert!(judge(&world, &one).is_ok() && judge(&world, &other).is_ok());
    one.evidence = other.evidence;
    assert_eq!(judge(&world, &one), Err(Reject::FinalSignature));
}
