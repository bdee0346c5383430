//! A store in a folder of the file system.
//!
//! An object is a file. It is written to a temporary name in its folder, synced, and renamed; then the folder is synced,
//! and the one above it where the folder is new. So an object is there whole or not at all, at any byte at which the
//! process or the machine dies. Temporary names begin with a dot and are nobody else's: what a crash leaves is no object,
//! is in nobody's way, and goes when its folder is removed.

mod disk;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::store::{CheckpointStore, StoreError};
use crate::{name, words};

/// How often a write looks for its folder. It is removed between two looks only by the removal of the last object in it.
const BEGINNINGS: u32 = 50;

/// How many folders are remembered as durable: those of the checkpoints in progress, with room to spare.
const REMEMBERED: usize = 256;

/// Objects as files below a folder.
#[derive(Debug)]
pub(crate) struct FileStore {
    url: String,
    root: PathBuf,
    /// Folders that are known to survive a loss of power.
    durable: Mutex<HashSet<PathBuf>>,
}

impl FileStore {
    /// The store in the folder `root`, which need not be there yet.
    pub(crate) fn new(url: &str, root: PathBuf) -> Self {
        Self { url: url.to_owned(), root, durable: Mutex::default() }
    }

    fn failed(&self, doing: &'static str, name: &str, cause: &io::Error) -> StoreError {
        let (url, name) = (self.url.clone(), name.to_owned());
        StoreError::Failed { url, name, doing, cause: words::of_file_system(cause, &self.root) }
    }

    /// Where an object is.
    fn path(&self, doing: &'static str, name: &str) -> Result<PathBuf, StoreError> {
        match name::check(name) {
            Ok(()) => Ok(self.root.join(name)),
            Err(cause) => {
                let (url, name, cause) = (self.url.clone(), name.to_owned(), cause.to_owned());
                Err(StoreError::Failed { url, name, doing, cause })
            }
        }
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let (Some(folder), Some(last)) = (path.parent(), path.file_name()) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let (temporary, mut file) = self.begin(folder, &last.to_string_lossy())?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        drop(file);
        if let Err(cause) = written.and_then(|()| fs::rename(&temporary, path)) {
            // A full disk gets its bytes back.
            let _ = fs::remove_file(&temporary);
            return Err(cause);
        }
        match disk::sync_folder(folder) {
            // It is gone with all that was in it: somebody has removed the object since.
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
            synced => synced,
        }
    }

    /// An empty file to write to. An empty folder may be removed at any moment, by another process too; one with a file in
    /// it is removed only with all that belongs to it, and then the write is not wanted any more.
    fn begin(&self, folder: &Path, last: &str) -> io::Result<(PathBuf, File)> {
        let mut begun = 1;
        loop {
            match self.make_durable(folder).and_then(|()| disk::create_temporary(folder, last)) {
                Err(e) if e.kind() == ErrorKind::NotFound && begun < BEGINNINGS => {
                    self.forget_all();
                    begun += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes a folder of the store, and those above it. Another process may have made it a moment ago and not have synced
    /// it yet, so the first use of a folder syncs the one above, whoever made it.
    fn make_durable(&self, folder: &Path) -> io::Result<()> {
        if self.durable.lock().unwrap_or_else(PoisonError::into_inner).contains(folder) {
            return Ok(());
        }
        match folder.parent().filter(|_| folder != self.root) {
            Some(above) => {
                self.make_durable(above)?;
                disk::make_folder(folder)?;
                disk::sync_folder(above)?;
            }
            // What is above the root may be somebody else's: it is looked at only where the root is to be made.
            None => disk::make_folders(folder)?,
        }
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if durable.len() >= REMEMBERED {
            durable.clear();
        }
        durable.insert(folder.to_owned());
        Ok(())
    }

    fn forget_all(&self) {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Removes the folders from `folder` up to below the root that have nothing in them.
    fn prune(&self, folder: &Path) {
        let mut folder = folder;
        // A folder that is not empty, or is the object's no more, ends it: both are no errors.
        while folder != self.root && fs::remove_dir(folder).is_ok() {
            self.forget_all();
            match folder.parent() {
                Some(above) => folder = above,
                None => return,
            }
        }
    }
}

impl CheckpointStore for FileStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path("write", name)?;
        self.write(&path, content).map_err(|cause| self.failed("write", name, &cause))
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.path("read", name)?;
        fs::read(path).map_err(|cause| match cause.kind() {
            ErrorKind::NotFound => StoreError::NotFound { url: self.url.clone(), name: name.to_owned() },
            _ => self.failed("read", name, &cause),
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let path = self.path("list", folder)?;
        let mut names = Vec::new();
        disk::list(&path, folder, &mut names).map_err(|cause| self.failed("list", folder, &cause))?;
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path("remove", name)?;
        let folder = path.parent().unwrap_or(&self.root);
        match fs::remove_file(&path).and_then(|()| disk::sync_folder(folder)) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(self.failed("remove", name, &cause)),
            _ => {
                self.prune(folder);
                Ok(())
            }
        }
    }

    fn remove_all(&self, folder: &str) -> Result<(), StoreError> {
        let path = self.path("remove", folder)?;
        self.forget_all();
        disk::remove_folder(&path).map_err(|cause| self.failed("remove", folder, &cause))?;
        self.prune(path.parent().unwrap_or(&self.root));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
