//! What strace has seen a process do with names of files. It decides which calls read and which write;
//! which of them are allowed is the tests' to say.

use std::path::{Component, Path, PathBuf};

/// A call that names a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Which file, without `..`.
    pub path: PathBuf,
    /// Whether it can change the file or its name.
    pub writes: bool,
}

/// Every file that a trace names; relative names are taken from `folder`.
#[must_use]
pub fn accesses(trace: &str, folder: &Path) -> Vec<Access> {
    let mut found = Vec::new();
    for line in trace.lines() {
        let Some((call, arguments)) = call(line) else {
            continue;
        };
        if matches!(call, "connect" | "bind" | "listen" | "prctl") {
            continue;
        }
        let writes = !call.starts_with("open")
            || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"]
                .iter()
                .any(|flag| arguments.contains(flag));
        for (base, name) in names(arguments) {
            let path = plain(&base.unwrap_or(folder.to_owned()).join(name));
            found.push(Access { path, writes });
        }
    }
    found
}

/// The arguments of every call with this name, in order.
#[must_use]
pub fn calls<'a>(trace: &'a str, name: &str) -> Vec<&'a str> {
    let calls = trace.lines().filter_map(call);
    calls
        .filter(|(call, _)| *call == name)
        .map(|(_, arguments)| arguments)
        .collect()
}

/// `1234  name(arguments…`; the second half of a call that was interrupted names nothing new.
fn call(line: &str) -> Option<(&str, &str)> {
    let rest = line
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start();
    let (name, arguments) = rest.split_once('(')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, arguments))
}

/// The quoted names, each with the folder of the descriptor before it: `5</a/b>, "c"` is `/a/b` and `c`.
fn names(arguments: &str) -> Vec<(Option<PathBuf>, String)> {
    let mut found = Vec::new();
    let mut parts = arguments.split('"');
    while let (Some(before), Some(name)) = (parts.next(), parts.next()) {
        let base = before
            .trim_end_matches([',', ' '])
            .strip_suffix('>')
            .and_then(|text| text.rsplit_once('<'))
            .map(|(_, folder)| PathBuf::from(folder));
        found.push((base, name.to_owned()));
    }
    found
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Access, accesses, calls};

    #[test]
    fn reads_what_strace_writes() {
        let trace = "\
11  openat(AT_FDCWD</own>, \"config.toml\", O_RDONLY|O_CLOEXEC) = 3</own/config.toml>
11  openat(AT_FDCWD, \"data/../../other/vault.key\", O_RDONLY|O_CLOEXEC <unfinished ...>
12  openat(5</own/data>, \"x\", O_WRONLY|O_CREAT|O_CLOEXEC, 0600) = 6</own/data/x>
11  <... openat resumed>)                   = -1 ENOENT (No such file or directory)
12  rename(\"/own/a\", \"/own/b\")              = 0
12  prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE) = 0
12  --- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0} ---
11  +++ exited with 0 +++
";
        let access = |path: &str, writes| Access {
            path: path.into(),
            writes,
        };
        let expected = [
            access("/own/config.toml", false),
            access("/other/vault.key", false),
            access("/own/data/x", true),
            access("/own/a", true),
            access("/own/b", true),
        ];
        assert_eq!(accesses(trace, Path::new("/own")), expected);
        assert_eq!(
            calls(trace, "prctl"),
            ["PR_SET_DUMPABLE, SUID_DUMP_DISABLE) = 0"]
        );
    }
}
