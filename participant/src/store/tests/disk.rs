//! Opening what is on disk: what is refused, by which code, and what is cut.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;
use firn_ledger::{
    folder::Folder,
    journal::{SegmentNumber, SegmentSource, check},
};

/// Where the last batch is: its file, its first byte and its length.
fn last_batch(home: &Home) -> (std::path::PathBuf, usize, usize) {
    let mut folder = Folder::open(&home.journal()).unwrap();
    let number = *folder.numbers().unwrap().last().unwrap();
    let bytes = folder.read(number).unwrap();
    let starts = |place: &usize| bytes[*place..].starts_with(b"FIRNBTCH");
    let start = (1..8).map(|sector| sector * 512).rfind(starts).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (folder.segment_path(number), start, end - start)
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn opens_again_at_the_same_head_over_many_segments() {
    let home = Home::new();
    let mut head = Head::empty();
    for round in 0..5 {
        let store = home.open().unwrap();
        assert_eq!(store.opened_at(), head);
        assert_eq!(store.close(), Some(head));
        head = home.commit(round * 10..round * 10 + 10).await;
        assert_eq!(head.size.leaves(), u64::from(round) * 10 + 10);
    }
    let mut folder = Folder::open(&home.journal()).unwrap();
    assert!(folder.numbers().unwrap().len() >= 7);
    let report = check(&mut folder, &[]);
    assert!(report.is_sound() && report.head == head);
    let content = home.content().await;
    assert_eq!(content.len(), 50);
    assert!(home.fatal.lock().unwrap().is_empty());
}

#[tokio::test]
async fn proves_every_old_head_from_the_tree() {
    let home = Home::new();
    let store = home.open().unwrap();
    let mut heads = Vec::new();
    for number in 0..20 {
        heads.push(
            store
                .committer()
                .commit(Command::Number(number))
                .await
                .unwrap()
                .durable
                .head(),
        );
    }
    let last = *heads.last().unwrap();
    for old in heads {
        let ask = move |view: &View<'_>| view.tree().consistency_proof(old.size, last.size);
        let proof = store.committer().query(ask).await.unwrap().unwrap();
        assert_eq!(
            proof.verify((old.size, old.root), (last.size, last.root)),
            Ok(())
        );
    }
}

#[tokio::test]
async fn a_second_opener_is_refused_and_told_who_holds_the_lock() {
    let home = Home::new();
    let store = home.open().unwrap();
    let Err(error) = home.open() else {
        panic!("opened twice")
    };
    assert_eq!(error.code(), "ledger_in_use");
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    store.close().unwrap();
    home.head();
}

#[tokio::test]
async fn a_torn_tail_is_cut_only_if_nobody_knows_of_more() {
    let home = Home::new();
    let head = home.commit(0..3).await;
    let old = home.options.data.join("old");
    copy_folder(&home.index(), &old.join("index"));
    copy_folder(&home.options.anchor, &old.join("anchor"));
    home.commit(3..4).await;
    let new = home.options.data.join("new");
    copy_folder(&home.index(), &new.join("index"));
    copy_folder(&home.options.anchor, &new.join("anchor"));
    let (file, start, length) = last_batch(&home);
    let whole = fs::read(&file).unwrap();
    for written in [
        0,
        1,
        51,
        52,
        53,
        length / 2,
        length - 9,
        length - 8,
        length - 1,
    ] {
        let put = |index: &Path, anchor: &Path| {
            let mut torn = whole.clone();
            torn[start + written..].fill(0);
            fs::write(&file, torn).unwrap();
            replace_folder(&index.join("index"), &home.index());
            replace_folder(&anchor.join("anchor"), &home.options.anchor);
        };
        put(&new, &old);
        assert_eq!(home.refusal(), "ledger_behind_index", "{written}");
        put(&old, &new);
        assert_eq!(home.refusal(), "ledger_behind_anchor", "{written}");
        put(&old, &old);
        let store = home.open().unwrap();
        assert_eq!(store.opened_at(), head, "{written}");
        // The space is written again.
        store.committer().commit(Command::Number(9)).await.unwrap();
        assert_eq!(store.close().unwrap().size.leaves(), 4);
        assert_eq!(home.content().await.len(), 4);
    }
}

#[tokio::test]
async fn a_witness_that_knows_of_more_or_of_another_history_is_heard() {
    let mut home = Home::new();
    let head = home.commit(0..3).await;
    let mut other = Home::new();
    let foreign = other.commit(5..7).await;
    home.options.witnessed = vec![head];
    home.head();
    home.options.witnessed = vec![head, foreign];
    assert_eq!(home.refusal(), "ledger_diverged");
    other.options.witnessed = vec![head];
    assert_eq!(other.refusal(), "ledger_behind_witness");
}

#[tokio::test]
async fn any_other_change_of_the_last_batch_is_damage() {
    let home = Home::new();
    home.commit(0..3).await;
    let (file, start, length) = last_batch(&home);
    for place in (start..start + length).step_by(7) {
        change(&file, |bytes| bytes[place] ^= 0x10);
        assert_eq!(home.refusal(), "ledger_damaged", "byte {place}");
        change(&file, |bytes| bytes[place] ^= 0x10);
    }
    change(&file, |bytes| bytes.truncate(start + length));
    assert_eq!(home.refusal(), "ledger_damaged");
}

#[tokio::test]
async fn a_restored_folder_is_refused_by_the_anchor() {
    let mut home = Home::new();
    home.options.anchor_every = 1;
    let kept = home.options.data.with_file_name("kept");
    for round in 0..8 {
        home.commit(round..round + 1).await;
        copy_folder(&home.options.data, &kept.join(round.to_string()));
    }
    for round in 0..7 {
        replace_folder(&kept.join(round.to_string()), &home.options.data);
        assert_eq!(home.refusal(), "ledger_behind_anchor", "after {round}");
    }
    replace_folder(&kept.join("7"), &home.options.data);
    home.head();
    fs::remove_dir_all(&home.options.data).unwrap();
    assert_eq!(home.refusal(), "ledger_behind_anchor");
}

#[tokio::test]
async fn a_journal_without_its_anchor_opens_only_on_an_operators_word() {
    let mut home = Home::new();
    let head = home.commit(0..3).await;
    let file = home.options.anchor.join("anchor");
    fs::remove_file(&file).unwrap();
    assert_eq!(home.refusal(), "anchor_missing");
    home.options.replace_lost_anchor = true;
    assert_eq!(home.head(), head);
    home.options.replace_lost_anchor = false;
    home.head();
    change(&file, |bytes| bytes[20] ^= 1);
    assert_eq!(home.head(), head, "one slot is enough");
    change(&file, |bytes| bytes[4096 + 20] ^= 1);
    assert_eq!(
        home.head(),
        head,
        "either slot is enough, and both are whole again"
    );
    change(&file, |bytes| {
        bytes[20] ^= 1;
        bytes[4096 + 20] ^= 1;
    });
    assert_eq!(home.refusal(), "anchor_damaged");
}

#[tokio::test]
async fn the_anchor_follows_by_the_set_number_of_records() {
    let mut home = Home::new();
    home.options.anchor_every = 4;
    let store = home.open().unwrap();
    for number in 0..11 {
        store
            .committer()
            .commit(Command::Number(number))
            .await
            .unwrap();
        // The anchor follows after the answer; a question is answered after it.
        store.committer().query(|_| ()).await.unwrap();
    }
    let held = Anchor::open(&home.options.anchor, IfMissing::Refuse)
        .unwrap()
        .head();
    assert_eq!(held.size.leaves(), 8);
    let last = store.close().unwrap();
    assert_eq!(
        Anchor::open(&home.options.anchor, IfMissing::Refuse)
            .unwrap()
            .head(),
        last
    );
}

#[tokio::test]
async fn what_others_could_read_or_change_is_refused() {
    let home = Home::new();
    home.commit(0..3).await;
    let segment = home.journal().join(SegmentNumber::FIRST.file_name());
    let anchor = home.options.anchor.join("anchor");
    for (path, mode) in [
        (home.options.data.clone(), 0o750),
        (home.journal(), 0o705),
        (home.options.anchor.clone(), 0o770),
        (segment, 0o640),
        (anchor, 0o604),
    ] {
        let right = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(home.refusal(), "ledger_permissions", "{}", path.display());
        fs::set_permissions(&path, right).unwrap();
    }
    home.head();
}

#[tokio::test]
async fn links_and_strange_files_are_refused_and_unfinished_segments_removed() {
    let home = Home::new();
    home.commit(0..20).await;
    let last = last_batch(&home).0;
    let elsewhere = home.options.data.join("moved");
    fs::rename(&last, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &last).unwrap();
    assert_eq!(home.refusal(), "ledger_strange_file");
    fs::remove_file(&last).unwrap();
    fs::rename(&elsewhere, &last).unwrap();
    let stray = home.journal().join("notes.txt");
    fs::write(&stray, "").unwrap();
    assert_eq!(home.refusal(), "ledger_strange_file");
    fs::remove_file(&stray).unwrap();
    let unfinished = home
        .journal()
        .join(SegmentNumber::new(99).file_name() + ".new");
    fs::write(&unfinished, [0; 100]).unwrap();
    home.head();
    assert!(!unfinished.exists());
}

#[tokio::test]
async fn a_missing_or_older_segment_is_damage_or_behind() {
    let home = Home::new();
    home.commit(0..30).await;
    let path = |number| home.journal().join(SegmentNumber::new(number).file_name());
    let count = Folder::open(&home.journal())
        .unwrap()
        .numbers()
        .unwrap()
        .len() as u64;
    for number in 0..count {
        let aside = home.options.data.join("aside");
        fs::rename(path(number), &aside).unwrap();
        let wanted = if number + 1 == count {
            "ledger_behind_anchor"
        } else {
            "ledger_damaged"
        };
        assert_eq!(home.refusal(), wanted);
        fs::rename(&aside, path(number)).unwrap();
    }
    home.head();
}
