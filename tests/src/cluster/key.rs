//! A cluster's key and what is paid with it. It decides which payments the tests ask for; whether they
//! are allowed is the participants' question.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use firn_ceremony::{
    Error,
    authority::{self, GrantTerms, RuleTerms},
    client::{Answer, Asked, RequesterLine},
    domain::Domain,
    now,
    payment::{Coin, Payment, SignedPayment, finish},
};
use firn_protocol::{
    bitcoin::{
        Child, Network, OwnScripts, Sats,
        psbt::PsbtVersion,
        transaction::{OutPoint, ScriptPubKey, Txid},
    },
    codec::List,
    documents::Intent,
    envelope::Verified,
    ids::{Epoch, RequestId},
    messages::SignRequest,
    sharing::ActiveSharing,
    signable::Signable,
};

use super::independent;

/// The network of every cluster's key.
pub const NETWORK: Network = Network::Regtest;
/// The most that one input of a test's payment holds.
const COIN: u64 = 1_000_000;
const FEE: u64 = 2_000;
const GRANT_VALIDITY_MS: u64 = 10 * 60 * 1000;

/// The rules of every cluster's key: one destination, and room for the tests' payments.
///
/// # Panics
/// Never: the numbers are amounts.
#[must_use]
pub fn rule_terms() -> RuleTerms {
    RuleTerms {
        network: NETWORK,
        destinations: vec![stranger(7)],
        outflow: sats(500_000_000),
        output: sats(400_000_000),
        fee: sats(20_000),
        fee_per_kvb: sats(50_000),
        allow_all: false,
    }
}

/// An address that nobody here has the key of.
#[must_use]
pub fn stranger(byte: u8) -> ScriptPubKey {
    ScriptPubKey::new([&[0x00, 0x14][..], &[byte; 20]].concat())
}

/// An amount.
///
/// # Panics
/// Over 21 million coins.
#[must_use]
pub fn sats(value: u64) -> Sats {
    Sats::new(value).expect("an amount")
}

/// 32 bytes that no other call gives, in this process or another.
#[must_use]
pub fn unique() -> [u8; 32] {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&call.to_be_bytes());
    bytes[8..24].copy_from_slice(&time.as_nanos().to_be_bytes());
    bytes[24..28].copy_from_slice(&std::process::id().to_be_bytes());
    bytes
}

/// A key that is in use.
#[derive(Debug)]
pub struct Key {
    /// Everything that says what it is.
    pub active: ActiveSharing,
    /// Its scripts.
    pub own: OwnScripts,
}

/// A request, for asking once or again.
#[derive(Debug, Clone)]
pub struct Order {
    /// What is sent.
    pub request: SignRequest,
    /// What it asks for.
    pub intent: Verified<Intent>,
    /// Under which id.
    pub request_id: RequestId,
    /// In which epoch.
    pub epoch: Epoch,
    /// The PSBT that it holds.
    pub psbt: Vec<u8>,
}

/// A signed payment, verified by an implementation that is not Firn's.
#[derive(Debug, Clone)]
pub struct Signed {
    /// As it came.
    pub answer: Answer,
    /// The transaction.
    pub payment: SignedPayment,
}

impl Key {
    /// A payment of `inputs` coins that nobody has asked for before, with change.
    ///
    /// # Panics
    /// Never for inputs that a transaction can have.
    #[must_use]
    pub fn payment(&self, inputs: u32, version: PsbtVersion) -> Payment {
        let coins = (0..inputs)
            .map(|index| Coin {
                outpoint: OutPoint {
                    txid: Txid::new(unique()),
                    vout: index,
                },
                value: sats(COIN),
                child: Child::new(index % 2, index).expect("a child"),
            })
            .collect();
        Payment {
            coins,
            to: stranger(7),
            amount: sats(COIN * u64::from(inputs) / 2),
            fee: sats(FEE),
            change: Child::new(1, 5).expect("a child"),
            version,
        }
    }

    /// The same as a PSBT.
    ///
    /// # Panics
    /// Never for a payment that adds up.
    #[must_use]
    pub fn psbt(&self, payment: &Payment) -> Vec<u8> {
        payment.to_psbt(&self.own).expect("a payment that adds up")
    }

    /// A new request for a new payment with two inputs.
    #[must_use]
    pub fn order(&self, domain: &Domain) -> Order {
        let psbt = self.psbt(&self.payment(2, PsbtVersion::V2));
        self.order_for(domain, psbt, |_| {})
    }

    /// A new request for a PSBT, with the grant's terms as `change` leaves them.
    ///
    /// # Panics
    /// If the PSBT is not one.
    #[must_use]
    pub fn order_for(
        &self,
        domain: &Domain,
        psbt: Vec<u8>,
        change: impl FnOnce(&mut GrantTerms),
    ) -> Order {
        let certified = self.active.certified();
        let key_id = certified.key_id();
        let group_key = certified.public().group_key();
        let signable = Signable::of_psbt(&psbt, key_id, NETWORK, group_key).unwrap();
        let requester = domain.requester();
        let secret = requester.secret().unwrap();
        let intent = authority::intent(NETWORK, key_id, &psbt, &secret).unwrap();
        let begin = now();
        let mut terms = GrantTerms {
            owner: requester.id.clone(),
            epoch: self.active.activation().first_epoch,
            intent: signable.intent_digest(),
            request_id: RequestId::from_bytes(unique()),
            not_before: begin,
            expires: begin.plus(GRANT_VALIDITY_MS),
        };
        change(&mut terms);
        let (request_id, epoch) = (terms.request_id, terms.epoch);
        let authority = domain.grant_authority().unwrap();
        let grant = authority::grant(terms, &self.active, &authority).unwrap();
        Order {
            request: SignRequest {
                intent: intent.clone(),
                grant,
                approvals: List::empty(),
            },
            intent: intent.verify(&requester.identity).unwrap(),
            request_id,
            epoch,
            psbt,
        }
    }

    /// Asks for an order's signatures, and verifies them with other implementations than Firn's.
    ///
    /// # Errors
    /// Whatever the requester's line says.
    ///
    /// # Panics
    /// If signatures come back that do not verify.
    pub async fn sign(&self, line: &RequesterLine, order: &Order) -> Result<Signed, Error> {
        let asked = Asked {
            sharing: &self.active,
            intent: &order.intent,
            request_id: order.request_id,
            epoch: order.epoch,
        };
        let answer = line.sign(order.request.clone(), &asked).await?;
        let payment = finish(&order.psbt, &answer.signed.signatures).unwrap();
        let spent: Vec<_> = payment
            .spent
            .iter()
            .map(|output| (output.value.value(), output.script.as_bytes().to_vec()))
            .collect();
        independent::verify(&payment.transaction, &spent).unwrap();
        Ok(Signed { answer, payment })
    }
}
