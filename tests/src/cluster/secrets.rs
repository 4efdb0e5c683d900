//! Looks for secret bytes in files and in the memory of processes, in every form that software writes
//! them in. It decides what counts as found; what may be found where is the tests' to say.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

/// Bytes read from a process at once.
const CHUNK: u64 = 1 << 20;

/// One form of a secret.
#[derive(Debug, Clone)]
struct Pattern {
    whose: String,
    form: &'static str,
    bytes: Vec<u8>,
}

/// Everything that is looked for.
#[derive(Debug, Default)]
pub struct Patterns {
    all: Vec<Pattern>,
    /// Whether a pattern begins with these two bytes.
    begins: Vec<bool>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Whose secret.
    pub whose: String,
    /// In which form.
    pub form: &'static str,
    /// Where: a file, or a part of a process's memory.
    pub place: String,
}

impl Patterns {
    /// Looks for a secret of 32 bytes or so: each half raw and in the other byte order (as scalars are in
    /// memory), hexadecimal, base64 at each alignment, and as Rust prints bytes.
    pub fn add(&mut self, whose: &str, secret: &[u8]) {
        let reversed: Vec<u8> = secret.iter().rev().copied().collect();
        let mut push = |form, bytes: Vec<u8>| {
            self.all.push(Pattern {
                whose: whose.to_owned(),
                form,
                bytes,
            });
        };
        for half in secret.chunks(secret.len().div_ceil(2)) {
            push("raw", half.to_vec());
        }
        for half in reversed.chunks(secret.len().div_ceil(2)) {
            push("reversed", half.to_vec());
        }
        for order in [secret, &reversed] {
            push("hex", hex::encode(order).into_bytes());
            push("HEX", hex::encode_upper(order).into_bytes());
            for alphabet in [b"+/", b"-_"] {
                for before in 0..3 {
                    push("base64", base64(order, before, alphabet));
                }
            }
            let printed = format!("{order:?}");
            push("printed", printed.trim_matches(['[', ']']).into());
        }
        self.begins = vec![false; 1 << 16];
        for pattern in &self.all {
            self.begins[start(pattern.bytes[0], pattern.bytes[1])] = true;
        }
    }

    /// What is in these bytes.
    #[must_use]
    pub fn find(&self, bytes: &[u8], place: &str) -> Vec<Found> {
        let mut found = Vec::new();
        let Some((mut last, rest)) = bytes.split_first() else {
            return found;
        };
        for (at, next) in rest.iter().enumerate() {
            if self.begins[start(*last, *next)] {
                for pattern in &self.all {
                    if bytes[at..].starts_with(&pattern.bytes) {
                        found.push(Found {
                            whose: pattern.whose.clone(),
                            form: pattern.form,
                            place: place.to_owned(),
                        });
                    }
                }
            }
            last = next;
        }
        found.sort();
        found.dedup();
        found
    }

    /// What is in the files of a folder and all below it, names included.
    ///
    /// # Panics
    /// If something cannot be read.
    #[must_use]
    pub fn find_in_folder(&self, folder: &Path) -> Vec<Found> {
        let mut found = Vec::new();
        for path in files(folder) {
            let place = path.display().to_string();
            found.extend(self.find(place.as_bytes(), &place));
            // A socket holds nothing.
            if path.is_file() {
                found.extend(self.find(&fs::read(&path).unwrap(), &place));
            }
        }
        found
    }

    /// What is in the memory that a process has written to.
    ///
    /// # Panics
    /// If the memory cannot be read: a test that cannot look must not pass.
    #[must_use]
    pub fn find_in_process(&self, pid: Pid) -> Vec<Found> {
        let pid = pid.as_raw_nonzero();
        let cannot = "the memory of processes under test must be readable: run as root";
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect(cannot);
        let memory = File::open(format!("/proc/{pid}/mem")).expect(cannot);
        let overlap = self.longest() as u64;
        let (mut found, mut looked_at) = (Vec::new(), 0_usize);
        for line in maps.lines().filter(|line| is_written(line)) {
            let (begin, end) = range(line);
            let mut at = begin;
            while at < end {
                // Somewhat more than a chunk, so that nothing hides across a border.
                let length = (end - at).min(CHUNK + overlap);
                let mut bytes = vec![0; usize::try_from(length).unwrap()];
                // A part may have been given back since the maps were read.
                if let Ok(count) = memory.read_at(&mut bytes, at) {
                    looked_at += count;
                    found.extend(self.find(&bytes[..count], &format!("memory: {line}")));
                }
                at += CHUNK;
            }
        }
        assert!(looked_at > 1 << 20, "{cannot}: {looked_at} bytes were read");
        found
    }

    fn longest(&self) -> usize {
        let lengths = self.all.iter().map(|pattern| pattern.bytes.len());
        lengths.max().unwrap_or_default()
    }
}

/// All files below a folder.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

const fn start(first: u8, second: u8) -> usize {
    (first as usize) << 8 | second as usize
}

/// Whether a line of /proc/<pid>/maps is about memory that the process can have put something in.
fn is_written(line: &str) -> bool {
    let permissions = line.split_whitespace().nth(1).unwrap_or_default();
    permissions.starts_with("rw") && !line.contains("[v")
}

fn range(line: &str) -> (u64, u64) {
    let (begin, rest) = line.split_once('-').unwrap();
    let end = rest.split_whitespace().next().unwrap();
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    (number(begin), number(end))
}

/// The characters that stand for `bytes` alone in a base64 text where `before` bytes (modulo 3) precede.
fn base64(bytes: &[u8], before: usize, last: &[u8; 2]) -> Vec<u8> {
    const FIRST: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let alphabet: Vec<u8> = FIRST.iter().chain(last).copied().collect();
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    // Characters whose six bits are all of these bytes.
    let skip = (6 - before * 8 % 6) % 6;
    bits[skip..]
        .chunks_exact(6)
        .map(|six| six.iter().fold(0_u8, |value, bit| value << 1 | bit))
        .map(|value| alphabet[usize::from(value)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Patterns;

    #[test]
    fn finds_every_form_of_a_secret() {
        let secret: Vec<u8> = (100..132).collect();
        let mut patterns = Patterns::default();
        patterns.add("a", &secret);
        let reversed: Vec<u8> = secret.iter().rev().copied().collect();
        let planted = [
            ("raw", secret[16..].to_vec()),
            ("reversed", reversed[..16].to_vec()),
            ("hex", hex::encode(&secret).into_bytes()),
            ("HEX", hex::encode_upper(&secret).into_bytes()),
            // As coreutils writes it: alone, after one byte and after two.
            (
                "base64",
                b"ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM=".to_vec(),
            ),
            (
                "base64",
                b"AGRlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKD".to_vec(),
            ),
            (
                "base64",
                b"AABkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ent8fX5/gIGCgw==".to_vec(),
            ),
            ("printed", format!("{secret:?}").into_bytes()),
        ];
        for (form, bytes) in planted {
            let around = [b"some text ".as_slice(), &bytes, b" and more"].concat();
            let found = patterns.find(&around, "here");
            assert!(found.iter().any(|found| found.form == form), "{form}");
        }
        assert!(patterns.find(&vec![100; 1000], "here").is_empty());
    }
}
