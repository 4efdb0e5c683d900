//! The demo's custody service: builds payments, has them granted and asks for signatures. Whether they
//! are allowed is the participants' question.

use std::time::Instant;

use firn_protocol::{
    bitcoin::{
        Child, Sats,
        psbt::PsbtVersion,
        transaction::{OutPoint, Txid},
    },
    codec::List,
    documents::Intent,
    envelope::Verified,
    ids::{Epoch, Identifier, RequestId},
    messages::{RequestSigned, SignRequest},
    signable::Signable,
};

use super::{
    Verdicts,
    archive::{Archive, prevouts},
    making::{Made, NETWORK},
    narrator::{Narrator, millis},
    report::ReportedTransaction,
};
use crate::{
    authority::{self, GrantTerms},
    client::{Answer, Asked, RequesterLine},
    clock::{now, random},
    domain::Domain,
    error::Error,
    payment::{Coin, Payment, SignedPayment, finish},
    verdict,
};

const GRANT_VALIDITY_MS: u64 = 10 * 60 * 1000;
/// The coins that a payment spends, in satoshi: neither suffices alone.
const COINS: [u64; 2] = [60_000_000, 45_000_000];
const AMOUNT: u64 = 70_000_000;
const FEE: u64 = 2_000;

/// Asks for signatures with one key.
pub(super) struct Cashier<'a> {
    domain: &'a Domain,
    made: &'a Made,
    requester: &'a RequesterLine,
    archive: &'a Archive,
}

/// A request, for asking once or again.
pub(super) struct Request {
    request: SignRequest,
    intent: Verified<Intent>,
    request_id: RequestId,
    epoch: Epoch,
    psbt: Vec<u8>,
}

/// A signed payment, verified.
pub(super) struct Signed {
    answer: Answer,
    payment: SignedPayment,
    request_id: RequestId,
    signers: Vec<String>,
    threshold: usize,
    elapsed_ms: u64,
    is_accepted: bool,
}

impl<'a> Cashier<'a> {
    pub(super) const fn new(
        domain: &'a Domain,
        made: &'a Made,
        requester: &'a RequesterLine,
        archive: &'a Archive,
    ) -> Self {
        Self {
            domain,
            made,
            requester,
            archive,
        }
    }

    /// Whether enough members are left when one is gone.
    pub(super) fn can_lose_one(&self) -> bool {
        let plan = self.made.active.certified().plan();
        plan.roster.len() > usize::from(plan.threshold.value())
    }

    /// A payment from two receiving addresses, with change to the change address `change`.
    pub(super) fn payment(
        &self,
        coins: [u32; 2],
        change: u32,
        version: PsbtVersion,
    ) -> Result<Request, Error> {
        let coins = coins
            .iter()
            .zip(COINS)
            .map(|(index, value)| {
                Ok(Coin {
                    outpoint: OutPoint {
                        txid: Txid::new(*random::<32>()?),
                        vout: 0,
                    },
                    value: sats(value),
                    child: Child::new(0, *index)?,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let payment = Payment {
            coins,
            to: self.made.destination.clone(),
            amount: sats(AMOUNT),
            fee: sats(FEE),
            change: Child::new(1, change)?,
            version,
        };
        self.request(payment.to_psbt(&self.made.own)?)
    }

    /// The requester signs the intent, the control plane grants exactly it.
    fn request(&self, psbt: Vec<u8>) -> Result<Request, Error> {
        let active = &self.made.active;
        let certified = active.certified();
        let key_id = certified.key_id();
        let signable = Signable::of_psbt(&psbt, key_id, NETWORK, certified.public().group_key())
            .map_err(Error::unverified("our own payment"))?;
        let requester = self.domain.requester();
        let intent = authority::intent(NETWORK, key_id, &psbt, &requester.secret()?)?;
        let intent = intent.verify(&requester.identity)?;
        let request_id = RequestId::from_bytes(*random::<32>()?);
        let epoch = active.activation().first_epoch;
        let begin = now();
        let terms = GrantTerms {
            owner: requester.id.clone(),
            epoch,
            intent: signable.intent_digest(),
            request_id,
            not_before: begin,
            expires: begin.plus(GRANT_VALIDITY_MS),
        };
        let grant = authority::grant(terms, active, &self.domain.grant_authority()?)?;
        let request = SignRequest {
            intent: intent.envelope().clone(),
            grant,
            approvals: List::empty(),
        };
        Ok(Request {
            request,
            intent,
            request_id,
            epoch,
            psbt,
        })
    }

    /// Asks, verifies, and keeps what came back under `name`.
    pub(super) async fn sign(&self, request: &Request, name: &str) -> Result<Signed, Error> {
        let asked = Asked {
            sharing: &self.made.active,
            intent: &request.intent,
            request_id: request.request_id,
            epoch: request.epoch,
        };
        let started = Instant::now();
        let answer = self.requester.sign(request.request.clone(), &asked).await?;
        let elapsed_ms = millis(started.elapsed());
        let payment = finish(&request.psbt, &answer.signed.signatures)?;
        self.archive.answer(&request.request, &answer.signed)?;
        self.archive.payment(name, &payment)?;
        let plan = self.made.active.certified().plan();
        let name_of = |member: &Identifier| {
            let entry = plan.member_at(*member);
            entry.map_or_else(|| member.to_string(), |entry| entry.name.to_string())
        };
        Ok(Signed {
            is_accepted: verdict::accepts(&payment.transaction, &payment.spent),
            signers: answer.checked.signers.iter().map(name_of).collect(),
            threshold: usize::from(plan.threshold.value()),
            request_id: request.request_id,
            answer,
            payment,
            elapsed_ms,
        })
    }
}

impl Signed {
    pub(super) const fn answer(&self) -> &RequestSigned {
        &self.answer.signed
    }

    pub(super) const fn is_stored(&self) -> bool {
        self.answer.checked.is_stored
    }

    pub(super) fn signers(&self) -> &[String] {
        &self.signers
    }

    pub(super) const fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }

    /// Tells what was signed, and judges it.
    pub(super) fn judge(&self, narrator: &Narrator, verdicts: &mut Verdicts<'_>) {
        narrator.fact("request", self.request_id);
        narrator.fact("session", self.answer.signed.session);
        narrator.fact("signed by", self.signers.join(", "));
        narrator.fact("elapsed", format_args!("{} ms", self.elapsed_ms));
        narrator.fact("transaction", &self.payment.txid);
        let inputs = self.payment.spent.len();
        verdicts.hold(
            &format!("Bitcoin Core's consensus code accepts all {inputs} inputs"),
            self.is_accepted && inputs == self.answer.signed.signatures.len(),
        );
        verdicts.hold(
            &format!("all {} signers gave a signed receipt", self.threshold),
            self.answer.checked.receipts == self.answer.checked.signers,
        );
    }

    pub(super) fn reported(&self) -> ReportedTransaction {
        ReportedTransaction {
            tx: hex::encode(&self.payment.transaction),
            txid: self.payment.txid.clone(),
            prevouts: prevouts(&self.payment.spent),
            request_id: self.request_id.to_string(),
            session_id: self.answer.signed.session.to_string(),
            signers: self.signers.clone(),
            elapsed_ms: self.elapsed_ms,
        }
    }
}

fn sats(value: u64) -> Sats {
    Sats::new(value).unwrap_or(Sats::ZERO)
}

// So that a change of these numbers that makes the payment impossible does not compile.
const _: () = assert!(COINS[0] + COINS[1] > AMOUNT + FEE);
