//! Ceremonies whose operator goes away.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "only what a test is about is told apart"
)]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use firn_protocol::{codec, limits, messages::*, reject::Reject};
use tokio::sync::Semaphore;

use super::{Running, authorities, house::operator, operate, secret};
use crate::session::{
    Send,
    fake::{dkg::Ceremonial, id},
};

#[tokio::test]
async fn the_record_of_a_ceremony_waits_for_an_operator_that_went_away() {
    let running = Running::start().await;
    let ceremony = Ceremonial::under(2, 3, &secret(2), authorities().1);
    let plan = ceremony.plan.endorsed().clone();
    let ceremony = Arc::new(Mutex::new(ceremony));
    let (gate, opened) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    for member in (1..=3).map(id) {
        let key = ceremony.lock().unwrap().secret(member);
        let name = format!("spiffe://td/participant/m-{member}");
        let connection = running.dial(&name, &key).await.unwrap();
        let (ceremony, gate, opened) = (
            Arc::clone(&ceremony),
            Arc::clone(&gate),
            Arc::clone(&opened),
        );
        tokio::spawn(async move {
            while let Ok((mut sender, mut receiver)) = connection.accept_stream().await {
                while let Ok(Some(frame)) = receiver.receive(limits::MAX_FRAME).await {
                    let message: ToMember = codec::decode(&frame, limits::MAX_FRAME).unwrap();
                    if matches!(message, ToMember::DkgOpen(_)) {
                        opened.fetch_add(1, Ordering::SeqCst);
                    }
                    if matches!(message, ToMember::CertificateSet(_)) {
                        drop(gate.acquire().await.unwrap());
                    }
                    let send = Send {
                        to: member,
                        message,
                    };
                    let answer = ceremony.lock().unwrap().answer(send).unwrap();
                    sender.send(&codec::encode(&answer).unwrap()).await.unwrap();
                }
            }
        });
    }
    let first = operator(&running).await;
    let run = || ToCeremony::Run(RunCeremony { plan: plan.clone() });
    let (mut sender, mut receiver) = first.open_stream().await.unwrap();
    sender.send(&codec::encode(&run()).unwrap()).await.unwrap();
    receiver.receive(limits::MAX_FRAME).await.unwrap().unwrap();
    first.close(0);
    gate.add_permits(3);

    let second = operator(&running).await;
    let record = loop {
        match operate(&second, run()).await.0 {
            FromCeremony::Certified(record) => break record,
            FromCeremony::Failed(failed) => assert_eq!(failed.code, Reject::Busy),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((record.certificates.len(), record.proofs.len()), (3, 3));
    let FromCeremony::Certified(again) = operate(&second, run()).await.0 else {
        panic!("it was there a moment ago")
    };
    assert_eq!(again, record);
    assert_eq!(
        opened.load(Ordering::SeqCst),
        3,
        "the members were asked again"
    );
    running.stop().await;
}
