//! The index may be lost or damaged at any time, and may never be wrong.

use std::fs;

use super::*;
use crate::store::index::SledTable;
use firn_ledger::{
    journal::Tip,
    table::{MemoryTable, TableError},
};
use rand_chacha::{
    ChaCha12Rng,
    rand_core::{Rng, SeedableRng},
};

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

#[test]
fn equals_a_table_in_memory_before_and_after_settling_and_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let (mut sled, tip) = SledTable::open(&path, 1, false).unwrap();
    assert_eq!(tip, Tip::genesis());
    let mut model = MemoryTable::default();
    let mut random = ChaCha12Rng::seed_from_u64(7);
    for step in 0..2_000 {
        let key = [
            b'k',
            (random.next_u32() % 9) as u8,
            (random.next_u32() % 9) as u8,
        ];
        let key = &key[..1 + (random.next_u32() % 3) as usize];
        if random.next_u32() % 3 == 0 {
            sled.delete(key).unwrap();
            model.delete(key).unwrap();
        } else {
            let value = random.next_u32().to_be_bytes();
            sled.put(key, &value).unwrap();
            model.put(key, &value).unwrap();
        }
        if step % 7 == 0 {
            sled.settle(&tip).unwrap();
        }
        assert_eq!(sled.get(key).unwrap(), model.get(key).unwrap());
        if step % 11 == 0 {
            assert_eq!(content(&sled), content(&model));
            let (from, below) = ([b'k', 2], [b'k', 5, 3]);
            let part = |table: &dyn Table| {
                let mut keys = Vec::new();
                table
                    .range(&from, Some(&below), &mut |key, _| {
                        keys.push(key.to_vec());
                        if keys.len() < 5 {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    })
                    .unwrap();
                keys
            };
            assert_eq!(part(&sled), part(&model));
            assert_eq!(sled.digest(), model.digest());
        }
    }
    assert_eq!(sled.put(&[0; 1000], b""), Err(TableError::TooLarge));
    sled.settle(&tip).unwrap();
    drop(sled);
    let (again, _) = SledTable::open(&path, 1, true).unwrap();
    assert_eq!(content(&again), content(&model));
    drop(again);
    let (other_version, _) = SledTable::open(&path, 2, true).unwrap();
    assert!(
        content(&other_version).is_empty(),
        "another version is made anew"
    );
}

#[tokio::test]
async fn a_damaged_or_missing_index_is_rebuilt_to_the_same_content() {
    let home = Home::new();
    let head = home.commit(0..60).await;
    let content = home.content().await;
    assert_eq!(content.len(), 60);
    let kept = home.options.data.join("kept");
    copy_folder(&home.index(), &kept);
    let mut random = ChaCha12Rng::seed_from_u64(11);
    let mut rebuilt = 0;
    for trial in 0..60 {
        replace_folder(&kept, &home.index());
        let files = files_below(&home.index());
        let file = &files[random.next_u32() as usize % files.len()];
        let mut bytes = fs::read(file).unwrap();
        let place = random.next_u32() as usize % bytes.len().max(1);
        match (trial % 4, bytes.is_empty()) {
            (0, _) => fs::remove_file(file).unwrap(),
            (_, true) => {}
            (1, _) => fs::write(file, &bytes[..place]).unwrap(),
            (2, _) => {
                let end = (place + 4096).min(bytes.len());
                bytes[place..end].fill(0);
                fs::write(file, &bytes).unwrap();
            }
            (_, _) => {
                bytes[place] ^= 1 << (trial % 8);
                fs::write(file, &bytes).unwrap();
            }
        }
        let store = home.open().unwrap();
        assert_eq!(store.opened_at(), head);
        let found = store
            .committer()
            .query(|view| super::content(view.state()))
            .await
            .unwrap();
        assert_eq!(found, content, "trial {trial}");
        store.close().unwrap();
        rebuilt += 1;
    }
    assert_eq!(rebuilt, 60);
    fs::remove_dir_all(home.index()).unwrap();
    assert_eq!(home.content().await, content);
}

#[tokio::test]
async fn an_old_index_is_brought_to_the_end() {
    let home = Home::new();
    home.commit(0..10).await;
    let old = home.options.data.join("old");
    copy_folder(&home.index(), &old);
    home.commit(10..30).await;
    let content = home.content().await;
    replace_folder(&old, &home.index());
    assert_eq!(home.content().await, content);
}

/// Opens an index as somebody who changes it in silence. sled's threads let go of its lock a little
/// after the last handle is dropped, so an index that is still locked is asked for again.
fn open_index(path: &std::path::Path) -> sled::Db {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        match sled::open(path) {
            Err(sled::Error::Io(error)) if std::time::Instant::now() < deadline => {
                assert!(error.to_string().contains("lock"), "{error}");
                std::thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}

#[tokio::test]
async fn an_index_with_anything_changed_in_silence_is_rebuilt() {
    let home = Home::new();
    home.commit(0..10).await;
    let content = home.content().await;
    let (kept, changed) = (&b"s000003"[..], &[0_u8, 0, 0, 9][..]);
    let change = |index: &sled::Db, number: u32| match number {
        0 => index.remove(kept),
        1 => index.insert(kept, changed),
        2 => index.insert("s000099", changed),
        3 => index.insert("x", changed),
        4 => index.remove("meta"),
        _ => {
            let mut meta = index.get("meta").unwrap().unwrap().to_vec();
            meta[30] ^= 1;
            index.insert("meta", meta)
        }
    };
    for number in 0..6 {
        let index = open_index(&home.index());
        change(&index, number).unwrap();
        drop(index);
        assert_eq!(home.content().await, content, "change {number}");
        home.commit(100 + number..101 + number).await;
        // What is committed on top of it shows that the state is the rules' own again.
        assert_eq!(home.content().await.len(), 11);
        std::fs::remove_dir_all(&home.options.data).unwrap();
        std::fs::remove_dir_all(&home.options.anchor).unwrap();
        home.commit(0..10).await;
    }
}
