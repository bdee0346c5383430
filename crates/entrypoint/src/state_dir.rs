//! The folder of what must survive a restart: one owner at a time, and no half-written file ever.
//!
//! Each role keeps to a folder of its own below `state.dir`. Its `lock` is held as an advisory lock on the open file,
//! which the kernel drops when the process dies, however it dies; the file that stays behind means nothing. Files are
//! small and written whole: to a temporary name, synced, renamed, and the folder synced, so that a crash at any byte
//! leaves the old content or the new. The calls block for a few milliseconds (two syncs): a role makes them from its
//! loop, never from a task that shares a thread with heartbeats.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use crate::role::Role;

mod remedy;

const LOCK: &str = "lock";
const TEMPORARY: &str = ".tmp";
/// Names the cluster that the folder belongs to.
const CLUSTER: &str = "cluster";

/// A state folder cannot be used, or a file in it. What was there before is there still.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// Another process holds the folder.
    #[error("state.dir: {path} is held by another process{}; stop that one or set state.dir to another folder", owner(*.pid), path = path.display())]
    Held {
        /// The role's folder.
        path: PathBuf,
        /// The process that wrote itself into the lock, where that can be read.
        pid: Option<u32>,
    },
    /// The folder cannot be made or written.
    #[error("state.dir: {path} cannot be written: {cause}; {}", remedy::of(path, cause), path = path.display())]
    Unwritable {
        /// The folder or the file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// A file cannot be read.
    #[error("state.dir: {path} cannot be read: {cause}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// A file has a content that was never written by this program.
    #[error("state.dir: {path} holds {found:?}, expected {expected}; restore the file or remove it", path = path.display())]
    Garbage {
        /// The file.
        path: PathBuf,
        /// The beginning of what it holds.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The folder belongs to another cluster.
    #[error("state.dir: {path} belongs to the cluster `{owner}`, and cluster.id is `{ours}`; set state.dir to a folder of this cluster, or cluster.id to `{owner}` if this is that one", path = path.display())]
    OtherCluster {
        /// The role's folder.
        path: PathBuf,
        /// The cluster that the folder names.
        owner: String,
        /// The cluster of this process.
        ours: String,
    },
    /// A name that leads out of the folder.
    #[error("state.dir: {name:?} is no name of a file inside the folder")]
    Name {
        /// The name.
        name: String,
    },
}

fn owner(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// A role's folder, locked as long as the value lives.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    /// Two writes of one name would share a temporary file.
    writing: Mutex<()>,
    /// Dropping it lets the next process in.
    _lock: File,
}

impl StateDir {
    /// Makes the role's folder below `state_dir` where it is missing, and locks it.
    ///
    /// # Errors
    /// [`StateDirError::Held`] while another process has it, [`StateDirError::Unwritable`] where this one may not.
    pub fn open(state_dir: &Path, role: Role) -> Result<Self, StateDirError> {
        let path = state_dir.join(role.name());
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |cause| StateDirError::Unwritable { path, cause }
        };
        fs::create_dir_all(&path).map_err(unwritable(&path))?;
        let lock_path = path.join(LOCK);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(unwritable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StateDirError::Held { path, pid });
            }
            Err(TryLockError::Error(cause)) => {
                return Err(StateDirError::Unwritable { path: lock_path, cause });
            }
        }
        // For people who find the folder held.
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(unwritable(&lock_path))?;
        Ok(Self { path, writing: Mutex::new(()), _lock: lock })
    }

    /// Notes that the folder belongs to the cluster of this name; one that belongs to another is refused, so that a server
    /// that was pointed at the wrong folder does not run another cluster's jobs a second time.
    ///
    /// # Errors
    /// [`StateDirError::OtherCluster`]; nothing was changed.
    pub fn claim(&self, cluster: &str) -> Result<(), StateDirError> {
        let Some(content) = self.read(CLUSTER)? else {
            return self.write(CLUSTER, format!("{cluster}\n").as_bytes());
        };
        let owner = String::from_utf8_lossy(&content).trim_end().to_owned();
        if owner == cluster {
            return Ok(());
        }
        Err(StateDirError::OtherCluster { path: self.path.clone(), owner, ours: cluster.to_owned() })
    }

    /// The role's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file `name` by `content`, or makes it. When this returns, the content survives a loss of power.
    /// `name` may have folders (`jobs/1f.json`), which are made.
    ///
    /// # Errors
    /// [`StateDirError::Unwritable`]; the old content is there still.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), StateDirError> {
        let path = self.resolve(name)?;
        let _one_at_a_time = self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        replace(&self.path, &path, content).map_err(|cause| StateDirError::Unwritable { path, cause })
    }

    /// The content of the file `name`; `None` where there is no such file.
    ///
    /// # Errors
    /// [`StateDirError::Unreadable`].
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StateDirError> {
        let path = self.resolve(name)?;
        match fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StateDirError::Unreadable { path, cause }),
        }
    }

    /// Removes the file `name`, if there is one.
    ///
    /// # Errors
    /// [`StateDirError::Unwritable`].
    pub fn remove(&self, name: &str) -> Result<(), StateDirError> {
        let path = self.resolve(name)?;
        match fs::remove_file(&path).and_then(|()| sync_folder(path.parent().unwrap_or(&self.path))) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(StateDirError::Unwritable { path, cause })
            }
            _ => Ok(()),
        }
    }

    /// Removes a folder of this folder with all that is in it, if there is one. A crash in the middle leaves all of it or
    /// nothing under its name; what is left under another is removed by [`Self::folders`].
    ///
    /// # Errors
    /// [`StateDirError::Unwritable`].
    pub fn remove_folder(&self, name: &str) -> Result<(), StateDirError> {
        let path = self.resolve(name)?;
        let mut aside = path.as_os_str().to_owned();
        aside.push(TEMPORARY);
        let aside = PathBuf::from(aside);
        let moved = fs::rename(&path, &aside).and_then(|()| sync_folder(path.parent().unwrap_or(&self.path)));
        match moved.and_then(|()| fs::remove_dir_all(&aside)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(StateDirError::Unwritable { path, cause })
            }
            _ => Ok(()),
        }
    }

    /// The names of the folders in a folder of this folder, sorted; none where there is no such folder. What a removal
    /// that was cut off has left is removed.
    ///
    /// # Errors
    /// [`StateDirError::Unreadable`].
    pub fn folders(&self, folder: &str) -> Result<Vec<String>, StateDirError> {
        let mut names = Vec::new();
        for (name, kind) in self.entries(folder)? {
            if !kind.is_dir() {
                continue;
            }
            if name.ends_with(TEMPORARY) {
                let left = self.path.join(folder).join(&name);
                if let Err(error) = fs::remove_dir_all(&left) {
                    tracing::warn!(folder = %left.display(), %error, "what is left of a removed folder stays");
                }
            } else {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The names of the files in a folder of this folder, sorted; none where there is no such folder. What a crash left
    /// unfinished is not among them.
    ///
    /// # Errors
    /// [`StateDirError::Unreadable`].
    pub fn names(&self, folder: &str) -> Result<Vec<String>, StateDirError> {
        let files = self.entries(folder)?.into_iter();
        let files = files.filter(|(name, kind)| kind.is_file() && !name.ends_with(TEMPORARY));
        let mut names: Vec<String> = files.map(|(name, _)| name).collect();
        names.sort();
        Ok(names)
    }

    fn entries(&self, folder: &str) -> Result<Vec<(String, fs::FileType)>, StateDirError> {
        let path = self.resolve(folder)?;
        let unreadable = |cause| StateDirError::Unreadable { path: path.clone(), cause };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(unreadable(cause)),
        };
        let named = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?))
        };
        entries.map(named).collect::<io::Result<_>>().map_err(unreadable)
    }

    fn resolve(&self, name: &str) -> Result<PathBuf, StateDirError> {
        let inside = !name.is_empty()
            && !name.ends_with(TEMPORARY)
            && name != LOCK
            && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if inside { Ok(self.path.join(name)) } else { Err(StateDirError::Name { name: name.to_owned() }) }
    }
}

fn replace(root: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(root);
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
        for made in folder.ancestors().skip(1).take_while(|above| above.starts_with(root)) {
            sync_folder(made)?;
        }
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    if let Err(cause) = written.and_then(|()| fs::rename(&temporary, path)) {
        // A full disk gets its bytes back; if even this fails, the next write takes the same name.
        let _ = fs::remove_file(&temporary);
        return Err(cause);
    }
    sync_folder(folder)
}

/// A rename is durable once the folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_by_name_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        let refused = StateDir::open(dir.path(), Role::JobMaster).unwrap_err();
        let text = refused.to_string();
        assert!(
            matches!(refused, StateDirError::Held { pid: Some(pid), .. } if pid == std::process::id()),
            "{text}"
        );
        assert!(text.contains(&first.path().display().to_string()), "{text}");
        StateDir::open(dir.path(), Role::ResourceManager).unwrap();
        drop(first);
        StateDir::open(dir.path(), Role::JobMaster).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = StateDir::open(&file.join("below"), Role::JobMaster).unwrap_err();
        assert!(matches!(refused, StateDirError::Unwritable { .. }));
        assert!(refused.to_string().contains("below/jobmaster"), "{refused}");
    }

    #[test]
    fn what_was_written_is_read_and_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        assert_eq!(state.read("jobs/a.json").unwrap(), None);
        assert_eq!(state.names("jobs").unwrap(), Vec::<String>::new());
        state.write("jobs/b.json", b"a longer text").unwrap();
        state.write("jobs/b.json", b"short").unwrap();
        state.write("jobs/a.json", b"").unwrap();
        assert_eq!(state.read("jobs/b.json").unwrap().unwrap(), b"short");
        assert_eq!(state.names("jobs").unwrap(), ["a.json", "b.json"]);
        state.remove("jobs/a.json").unwrap();
        state.remove("jobs/a.json").unwrap();
        assert_eq!(state.names("jobs").unwrap(), ["b.json"]);
    }

    #[test]
    fn a_write_cut_off_by_a_crash_is_neither_seen_nor_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        state.write("jobs/a", b"old").unwrap();
        fs::write(state.path().join("jobs/a.tmp"), b"ne").unwrap();
        assert_eq!(state.read("jobs/a").unwrap().unwrap(), b"old");
        assert_eq!(state.names("jobs").unwrap(), ["a"]);
        state.write("jobs/a", b"new").unwrap();
        assert_eq!(state.read("jobs/a").unwrap().unwrap(), b"new");
    }

    #[test]
    fn a_folder_is_removed_whole_and_what_a_crash_left_of_one_is_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        assert_eq!(state.folders("jobs").unwrap(), Vec::<String>::new());
        for name in ["jobs/b/x", "jobs/b/y", "jobs/a/x", "jobs/c.tmp/x"] {
            let path = state.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        state.write("jobs/file", b"").unwrap();
        assert_eq!(state.folders("jobs").unwrap(), ["a", "b"]);
        assert!(!state.path().join("jobs/c.tmp").exists(), "a removal that was cut off is completed");
        state.remove_folder("jobs/b").unwrap();
        state.remove_folder("jobs/b").unwrap();
        assert_eq!(state.folders("jobs").unwrap(), ["a"]);
        assert_eq!(state.names("jobs").unwrap(), ["file"]);
        assert!(matches!(state.remove_folder("../jobs"), Err(StateDirError::Name { .. })));
    }

    #[test]
    fn a_folder_of_another_cluster_is_refused_by_both_names() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        state.claim("blue").unwrap();
        state.claim("blue").unwrap();
        let refused = state.claim("green").unwrap_err().to_string();
        assert!(refused.contains("`blue`") && refused.contains("`green`"), "{refused}");
        state.claim("blue").unwrap();
    }

    #[test]
    fn a_write_that_fails_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        fs::create_dir(state.path().join("taken")).unwrap();
        assert!(matches!(state.write("taken", b"x"), Err(StateDirError::Unwritable { .. })));
        assert!(!state.path().join("taken.tmp").exists());
    }

    #[test]
    fn names_do_not_lead_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path(), Role::JobMaster).unwrap();
        for name in ["", "../x", "/etc/x", "a/../../x", "lock", "x.tmp"] {
            assert!(matches!(state.write(name, b""), Err(StateDirError::Name { .. })), "{name:?}");
        }
    }
}
