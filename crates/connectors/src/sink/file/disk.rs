//! The file operations that must happen in a given order, one function each.
//!
//! Each happens or does not, but for [`append`], which may break off. Tests let a process die before each in turn.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::SinkError;

/// Puts a file's content on the disk.
pub(super) fn sync(file: &File, path: &Path) -> Result<(), SinkError> {
    may_happen().and_then(|()| file.sync_all()).map_err(SinkError::io("sync", path))
}

/// Puts what a folder lists on the disk: new names, and the absence of old ones.
pub(super) fn sync_folder(folder: &Path) -> Result<(), SinkError> {
    let synced = may_happen().and_then(|()| File::open(folder)).and_then(|folder| folder.sync_all());
    synced.map_err(SinkError::io("sync the folder", folder))
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    may_happen()?;
    fs::rename(from, to)
}

/// What is gone already need not be removed.
pub(super) fn remove(path: &Path) -> Result<(), SinkError> {
    match may_happen().and_then(|()| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SinkError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Writes `length` bytes of `from` to `offset` of `to`, and says how many it were. Between two files the system copies.
pub(super) fn append(from: &File, length: u64, to: &mut File, offset: u64) -> io::Result<u64> {
    to.seek(SeekFrom::Start(offset))?;
    if let Err(died) = may_happen() {
        io::copy(&mut from.take(length / 2), to)?;
        return Err(died);
    }
    io::copy(&mut from.take(length), to)
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it fails")]
fn may_happen() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(super) use death::{DEATH, dies_after, lives};

#[cfg(test)]
use death::may_happen;

/// The death of a process between two file operations.
#[cfg(test)]
mod death {
    use std::cell::Cell;
    use std::io;

    /// What the operation says at which the process died.
    pub(in super::super) const DEATH: &str = "the process died";

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// So many operations of this thread happen, and none after them.
    pub(in super::super) fn dies_after(operations: u32) {
        LEFT.set(Some(operations));
    }

    pub(in super::super) fn lives() {
        LEFT.set(None);
    }

    pub(super) fn may_happen() -> io::Result<()> {
        match LEFT.get() {
            Some(0) => Err(io::Error::other(DEATH)),
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
