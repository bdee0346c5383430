//! What the file system is asked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file that is nobody else's. `create_new` is exclusive on network file systems too, so neither another process nor
/// another machine writes to it; what a crash has left under a name takes that name only.
pub(super) fn create_temporary(folder: &Path, last: &str) -> io::Result<(PathBuf, File)> {
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!(".{last}.{process}-{number}.tmp"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && number < u32::MAX => number += 1,
            outcome => return outcome.map(|file| (path, file)),
        }
    }
}

/// A rename, or a new folder, is durable once the folder is that it stands in.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes one folder, if it is not there.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(ErrorKind::NotADirectory.into()),
        outcome => outcome,
    }
}

/// Makes a folder and those above it that are missing, and syncs each that has got a new one.
pub(super) fn make_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let Some(above) = path.parent() else { return make_folder(path) };
    make_folders(above)?;
    make_folder(path)?;
    sync_folder(above)
}

/// The names of the objects in a folder and below.
pub(super) fn list(path: &Path, folder: &str, names: &mut Vec<String>) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        // It may have been removed since it was found.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        let last = entry.file_name();
        // What is no text was not written by this program.
        let Some(last) = last.to_str().filter(|last| !last.starts_with('.')) else { continue };
        let name = format!("{folder}/{last}");
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &name, names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}

/// Removes a folder with all that is in it. A late write may make it anew meanwhile; then that is left.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Ok(()),
        outcome => outcome,
    }
}
