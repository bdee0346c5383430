//! Causes in words that say what to do.

use std::io::{self, ErrorKind};
use std::path::Path;

/// What the file system says, and the way out.
pub(crate) fn of_file_system(cause: &io::Error, root: &Path) -> String {
    let root = root.display();
    let way_out = match cause.kind() {
        ErrorKind::StorageFull => {
            format!("make room on the disk of {root}, or put the checkpoints on another")
        }
        ErrorKind::QuotaExceeded => format!("raise the quota on {root}, or put the checkpoints elsewhere"),
        ErrorKind::ReadOnlyFilesystem => {
            format!("mount {root} writable, or put the checkpoints elsewhere")
        }
        ErrorKind::PermissionDenied => {
            format!("let this user read and write {root}, or put the checkpoints elsewhere")
        }
        ErrorKind::NotADirectory => {
            format!(
                "a file is in the way of a folder in or above {root}; move it, or put the checkpoints elsewhere"
            )
        }
        ErrorKind::IsADirectory => format!("a folder is in the place of an object in {root}; move it away"),
        _ => return cause.to_string(),
    };
    format!("{cause}; {way_out}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_can_mend_comes_with_the_way_out() {
        for (kind, word) in [
            (ErrorKind::StorageFull, "make room"),
            (ErrorKind::QuotaExceeded, "quota"),
            (ErrorKind::ReadOnlyFilesystem, "writable"),
            (ErrorKind::PermissionDenied, "let this user"),
            (ErrorKind::NotADirectory, "in the way"),
            (ErrorKind::IsADirectory, "move it away"),
        ] {
            let text = of_file_system(&kind.into(), Path::new("/c"));
            assert!(text.contains(word) && text.contains("/c"), "{text}");
        }
        let other = io::Error::from(ErrorKind::TimedOut);
        assert_eq!(of_file_system(&other, Path::new("/c")), other.to_string());
    }
}
