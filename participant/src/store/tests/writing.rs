//! Commands in, records on disk, answers out.

use super::*;
use crate::store::committer::{Work, Writer};
use firn_ledger::{
    journal::{Sequence, Tip, check},
    table::MemoryTable,
};

/// A writer thread over files in memory.
fn start(files: &MemoryFiles, waiting: usize) -> (Writer<SetOnce>, Arc<Mutex<Vec<&'static str>>>) {
    let size = SegmentBytes::new(8192).unwrap();
    let (state, tip) = (MemoryTable::default(), Tip::genesis());
    let ledger = Ledger::open(SetOnce, files.clone(), state, &tip, &[], size).unwrap();
    let fatal = Arc::default();
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::default());
    let work = Work {
        ledger,
        anchor: None,
        anchor_every: 1,
        clock,
        on_fatal: recorder(&fatal),
    };
    (Writer::start(work, waiting).unwrap(), fatal)
}

#[tokio::test]
async fn an_answer_comes_with_the_place_and_the_head_that_are_on_disk() {
    let files = MemoryFiles::default();
    let (writer, _) = start(&files, 16);
    for number in 0..20 {
        let done = writer
            .committer()
            .commit(Command::Number(number))
            .await
            .unwrap();
        assert_eq!(done.durable.first(), Sequence::new(number.into()));
        assert_eq!(done.durable.records(), 1);
        let on_disk = check(&mut files.synced(), &[]);
        assert_eq!(done.durable.head(), on_disk.head);
    }
    let asked = writer
        .committer()
        .commit(Command::Ask("000003"))
        .await
        .unwrap();
    assert_eq!((asked.answer, asked.durable.records()), (true, 0));
    assert_eq!(writer.close(), Some(asked.durable.head()));
}

#[tokio::test]
async fn commands_that_wait_together_share_one_sync_and_see_each_other() {
    let files = MemoryFiles::default();
    let (writer, _) = start(&files, 256);
    // A question that waits keeps the thread busy until everybody stands in the queue.
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let mut tasks = tokio::task::JoinSet::new();
    let committer = writer.committer();
    let (reached, holds) = std::sync::mpsc::channel::<()>();
    let hold = move |_: &View<'_>| reached.send(()).is_ok() && gate.recv().is_ok();
    let holding = tokio::spawn(async move { committer.query(hold).await });
    tokio::task::yield_now().await;
    holds.recv().unwrap();
    for number in 0..64 {
        let committer = writer.committer();
        // Each key is asked for twice: one of the two must lose.
        tasks.spawn(async move { committer.commit(Command::Number(number / 2)).await });
        tokio::task::yield_now().await;
    }
    let before = files.syncs();
    release.send(()).unwrap();
    assert!(holding.await.unwrap().unwrap());
    let (mut committed, mut refused) = (0, 0);
    while let Some(outcome) = tasks.join_next().await {
        match outcome.unwrap() {
            Ok(done) => {
                assert_eq!(done.durable.head().size.leaves(), 32);
                committed += 1;
            }
            Err(error) => {
                assert_eq!(error, CommitError::Refused("already_set"));
                refused += 1;
            }
        }
    }
    assert_eq!((committed, refused), (32, 32));
    assert_eq!(files.syncs() - before, 1, "all 64 share one sync");
}

#[tokio::test]
async fn a_full_queue_is_busy_and_a_closed_ledger_has_stopped() {
    let files = MemoryFiles::default();
    let (writer, _) = start(&files, 1);
    let committer = writer.committer();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let (reached, holds) = std::sync::mpsc::channel::<()>();
    let holding = {
        let committer = committer.clone();
        tokio::spawn(async move {
            let hold = move |_: &View<'_>| reached.send(()).is_ok() && gate.recv().is_ok();
            committer.query(hold).await
        })
    };
    tokio::task::yield_now().await;
    holds.recv().unwrap();
    let waiting = {
        let committer = committer.clone();
        tokio::spawn(async move { committer.commit(Command::Number(1)).await })
    };
    tokio::task::yield_now().await;
    assert_eq!(
        committer.commit(Command::Number(2)).await.unwrap_err(),
        CommitError::Busy
    );
    release.send(()).unwrap();
    holding.await.unwrap().unwrap();
    assert!(waiting.await.unwrap().is_ok());
    assert_eq!(writer.close().unwrap().size.leaves(), 1);
    assert_eq!(
        committer.commit(Command::Number(3)).await.unwrap_err(),
        CommitError::Stopped
    );
    assert_eq!(
        committer.query(|_| ()).await.unwrap_err(),
        CommitError::Stopped
    );
}

#[tokio::test]
async fn a_failure_at_any_step_ends_the_process_and_loses_nothing_that_was_answered() {
    let mut steps = 0;
    loop {
        let files = MemoryFiles::default();
        let (writer, fatal) = start(&files, 16);
        files.fail_after(steps);
        let mut answered = 0_u32;
        let stopped = loop {
            match writer.committer().commit(Command::Number(answered)).await {
                Ok(_) => answered += 1,
                Err(error) => break Some(error),
            }
            if answered == 30 {
                break None;
            }
        };
        if stopped.is_none() {
            break;
        }
        assert_eq!(stopped, Some(CommitError::Stopped), "step {steps}");
        assert_eq!(*fatal.lock().unwrap(), ["ledger_disk_full"], "step {steps}");
        assert_eq!(writer.close(), None);
        // Whether the unsynced write arrived or not, all that was answered is there after a restart.
        for left in [files.synced(), files.written()] {
            let again = MemoryStore::open(SetOnce, MemoryFiles::holding(left)).unwrap();
            assert!(
                again.head().size.leaves() >= u64::from(answered),
                "step {steps}"
            );
        }
        steps += 1;
    }
    assert!(steps > 60, "{steps}");
}

#[tokio::test]
async fn what_a_killed_process_left_unsynced_is_synced_before_anybody_hears_of_it() {
    let files = MemoryFiles::default();
    let (writer, _) = start(&files, 16);
    writer.committer().commit(Command::Number(1)).await.unwrap();
    // The write passes, the sync does not.
    files.fail_after(1);
    assert_eq!(
        writer
            .committer()
            .commit(Command::Number(2))
            .await
            .unwrap_err(),
        CommitError::Stopped
    );
    assert_eq!(check(&mut files.synced(), &[]).head.size.leaves(), 1);
    files.heal();
    let again = MemoryStore::open(SetOnce, files.clone()).unwrap();
    assert_eq!(check(&mut files.synced(), &[]).head, again.head());
    assert_eq!(again.head().size.leaves(), 2);
}

#[test]
fn records_that_fit_into_no_batch_are_refused_and_leave_no_trace() {
    let size = SegmentBytes::new(2048).unwrap();
    let (state, tip) = (MemoryTable::default(), Tip::genesis());
    let mut ledger = Ledger::open(SetOnce, MemoryFiles::default(), state, &tip, &[], size).unwrap();
    let commands = vec![
        Command::Set("small", vec![1; 900]),
        Command::Set("large", vec![1; 2000]),
        Command::Set("other", vec![1; 900]),
        Command::Set("small", vec![2; 9]),
    ];
    let outcomes = ledger.commit(commands, UnixMillis::new(1)).unwrap();
    let short: Vec<_> = outcomes
        .iter()
        .map(|one| one.as_ref().map(|done| done.answer))
        .collect();
    let (large, twice) = (CommitError::TooLarge, CommitError::Refused("already_set"));
    assert_eq!(short, [Ok(true), Err(&large), Ok(true), Err(&twice)]);
    assert_eq!(ledger.head().size.leaves(), 2);
    assert_eq!(content(ledger.view().state()).len(), 2);
}

#[test]
fn the_rules_see_a_clock_that_went_back() {
    let mut store = MemoryStore::open(SetOnce, MemoryFiles::default()).unwrap();
    store
        .commit(Command::Number(1), UnixMillis::new(500))
        .unwrap();
    let refused = store
        .commit(Command::Number(2), UnixMillis::new(499))
        .unwrap_err();
    assert_eq!(refused, CommitError::Refused("clock_behind"));
    assert_eq!(store.view().tip().last_time(), Some(UnixMillis::new(500)));
}

#[test]
fn a_record_that_breaks_the_rules_does_not_open() {
    struct Careless;
    impl Rules for Careless {
        type Command = ();
        type Answer = ();
        type Refusal = ();
        const STATE_VERSION: u32 = 1;
        fn admit(&self, _: &dyn Table, (): (), _: Moment) -> Result<Admitted<()>, NotAdmitted<()>> {
            let record = NewRecord::new(SET, b"same=".to_vec()).unwrap();
            Ok(Admitted {
                records: vec![record],
                answer: (),
            })
        }
        fn apply(&self, _: &mut dyn Table, _: &Record) -> Result<(), RuleViolation> {
            Ok(())
        }
    }
    let files = MemoryFiles::default();
    let mut store = MemoryStore::open(Careless, files.clone()).unwrap();
    for _ in 0..2 {
        store.commit((), UnixMillis::new(1)).unwrap();
    }
    let Err(error) = MemoryStore::open(SetOnce, files) else {
        panic!("opened")
    };
    assert_eq!(error.code(), "ledger_unlawful_record");
}
