//! A process that hangs while it stops ends at the second signal. Signals are for a whole process, so
//! this is tried in one of its own.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test states what it expects"
)]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

const READY: &str = "ready to be told";
const DRAINS: &str = "drains for ever";

#[test]
fn ends_at_the_second_signal_although_the_first_still_drains() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "drains_for_ever", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |text: &str| {
        let said = lines.find(|line| line.as_ref().unwrap().contains(text));
        said.unwrap().unwrap();
    };
    wait_for(READY);
    kill_process(pid, Signal::TERM).unwrap();
    wait_for(DRAINS);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
#[ignore = "run by ends_at_the_second_signal_although_the_first_still_drains in a process of its own"]
fn drains_for_ever() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stop = firn_process::stop_signal().unwrap();
        println!("{READY}");
        stop.await;
        println!("{DRAINS}");
        std::future::pending::<()>().await;
    });
}
