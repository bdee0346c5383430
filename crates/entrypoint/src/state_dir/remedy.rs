//! What to do about a state folder that cannot be written: whose it is, who asks, and what would help.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The way out, in words for an operator.
pub(super) fn of(path: &Path, cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => match nearest(path) {
            Some((there, metadata)) => not_ours(&there, &metadata, user()),
            None => "set state.dir to a folder that this user may write".to_owned(),
        },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on its file system; what was stored before is there still".to_owned()
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "mount a writable volume there, or set state.dir to a folder on one".to_owned()
        }
        _ => "set state.dir to a folder that this user may write".to_owned(),
    }
}

fn not_ours(there: &Path, metadata: &Metadata, (user, group): (u32, u32)) -> String {
    let there = there.display();
    let (owner, owners) = (metadata.uid(), metadata.gid());
    if owner == user {
        return format!(
            "{there} belongs to this user ({user}) and has the mode {:o}: `chmod u+rwx {there}`, or set state.dir to another \
             folder",
            metadata.mode() & 0o7777
        );
    }
    format!(
        "{there} belongs to user {owner}, group {owners}, and this process runs as {user}:{group}: give it the folder \
         (`chown -R {user}:{group}` of {there}, for a volume of the folder behind it), run it as {owner}:{owners} (`user:` of a \
         compose file), or set state.dir to another folder"
    )
}

/// The path itself, or what there is of it.
fn nearest(path: &Path) -> Option<(PathBuf, Metadata)> {
    let absolute = std::path::absolute(path).ok()?;
    // A file that can be looked at says whose it is; one that cannot lies in a folder that says so.
    absolute.ancestors().find_map(|there| Some((there.to_owned(), std::fs::metadata(there).ok()?)))
}

fn user() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_user_is_named_with_both_users_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let metadata = std::fs::metadata(dir.path()).unwrap();
        let (owner, stranger) = (metadata.uid(), metadata.uid() + 10_001);
        let text = not_ours(dir.path(), &metadata, (stranger, 7));
        for part in [
            dir.path().display().to_string(),
            format!("user {owner}"),
            format!("runs as {stranger}:7"),
            format!("chown -R {stranger}:7"),
            "`user:`".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} is not in: {text}");
        }
    }

    #[test]
    fn a_folder_of_ones_own_that_is_closed_says_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let metadata = std::fs::metadata(dir.path()).unwrap();
        let text = not_ours(dir.path(), &metadata, (metadata.uid(), 0));
        let mode = format!("{:o}", metadata.mode() & 0o7777);
        assert!(text.contains("chmod u+rwx") && text.contains(&mode), "{text}");
    }

    #[test]
    fn of_a_path_that_is_not_there_the_part_that_is_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let (there, _) = nearest(&dir.path().join("not/there")).unwrap();
        assert_eq!(there, dir.path());
    }

    #[test]
    fn each_cause_has_its_own_way_out() {
        let way = |kind: io::ErrorKind| of(Path::new("/"), &kind.into());
        assert!(way(io::ErrorKind::StorageFull).contains("make room"));
        assert!(way(io::ErrorKind::ReadOnlyFilesystem).contains("writable volume"));
        assert!(way(io::ErrorKind::PermissionDenied).contains("state.dir"));
        assert!(way(io::ErrorKind::NotADirectory).contains("state.dir"));
    }
}
