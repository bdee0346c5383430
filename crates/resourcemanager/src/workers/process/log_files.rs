//! What workers write: a file for each, beside the list.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use runtime_core::ResourceId;

/// The logs of so many workers that have ended are kept: a command that crashes for hours leaves no thousands.
const KEPT: usize = 50;

/// The end of a log that is looked at for last words.
const TAIL: u64 = 4 << 10;
const LAST_LINES: usize = 3;
const LAST_CHARS: usize = 400;

#[derive(Clone)]
pub(super) struct LogFiles {
    folder: PathBuf,
}

impl LogFiles {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn path(&self, id: &ResourceId) -> PathBuf {
        self.folder.join(format!("{id}.log"))
    }

    pub(super) fn open(&self, id: &ResourceId) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        File::options().create(true).append(true).open(self.path(id))
    }

    /// The last lines of a log in one; empty where there is none.
    pub(super) fn last_words(&self, id: &ResourceId) -> String {
        tail(&self.path(id)).map(|bytes| brief(&String::from_utf8_lossy(&bytes))).unwrap_or_default()
    }

    /// Removes the oldest logs of workers that have ended.
    pub(super) fn prune(&self, living: &BTreeSet<ResourceId>) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let lives = |path: &Path| {
            let id = path.file_stem().and_then(|stem| stem.to_str()?.parse::<ResourceId>().ok());
            id.is_some_and(|id| living.contains(&id))
        };
        let mut ended: Vec<_> = entries
            .flatten()
            .filter(|entry| !lives(&entry.path()))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        ended.sort();
        for (_, path) in ended.iter().take(ended.len().saturating_sub(KEPT)) {
            if let Err(error) = fs::remove_file(path) {
                tracing::debug!(log = %path.display(), %error, "an old log stays");
            }
        }
    }
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn brief(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join(" | ");
    // The end says most.
    let surplus = last.chars().count().saturating_sub(LAST_CHARS);
    let shown: String = last.chars().skip(surplus).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if surplus == 0 { shown } else { format!("...{shown}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> ResourceId {
        format!("worker-1-{n}").parse().unwrap()
    }

    #[test]
    fn last_words_are_one_line_of_bounded_length() {
        let folder = tempfile::tempdir().unwrap();
        let logs = LogFiles::new(folder.path().join("logs"));
        assert_eq!(logs.last_words(&id(1)), "");
        logs.open(&id(1)).unwrap();
        fs::write(logs.path(&id(1)), "one\n\ntwo\n three\u{1b}[0m\nfour\n").unwrap();
        assert_eq!(logs.last_words(&id(1)), "two | three [0m | four");
        fs::write(logs.path(&id(1)), "x".repeat(10_000)).unwrap();
        assert_eq!(logs.last_words(&id(1)).len(), LAST_CHARS + 3);
    }

    #[test]
    fn of_those_that_have_ended_the_last_logs_are_kept_and_of_the_living_all() {
        let folder = tempfile::tempdir().unwrap();
        let logs = LogFiles::new(folder.path().to_owned());
        for n in 0..KEPT + 5 {
            logs.open(&id(n)).unwrap();
        }
        let living = BTreeSet::from([id(0), id(1)]);
        logs.prune(&living);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), KEPT + 2);
        assert!(logs.path(&id(0)).exists() && logs.path(&id(1)).exists());
    }
}
