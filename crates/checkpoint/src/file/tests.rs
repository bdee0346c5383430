//! The file store against a file system.

use super::*;

fn store(root: &Path) -> FileStore {
    FileStore::new(&format!("file://{}", root.display()), root.to_owned())
}

fn everything(root: &Path) -> Vec<String> {
    fn walk(path: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.display().to_string());
            if path.is_dir() {
                walk(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(root, &mut found);
    found
}

#[test]
fn what_was_put_is_read_listed_replaced_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir.path().join("new/root"));
    assert!(matches!(store.get("j/chk-1/metadata"), Err(StoreError::NotFound { .. })));
    assert_eq!(store.list("j").unwrap(), Vec::<String>::new());
    store.put("j/chk-1/metadata", b"a longer text").unwrap();
    store.put("j/chk-1/metadata", b"short").unwrap();
    store.put("j/chk-10/v0-0-1-0", b"").unwrap();
    assert_eq!(store.get("j/chk-1/metadata").unwrap(), b"short");
    assert_eq!(store.list("j").unwrap(), ["j/chk-1/metadata", "j/chk-10/v0-0-1-0"]);
    assert_eq!(store.list("j/chk-1").unwrap(), ["j/chk-1/metadata"]);
    store.remove("j/chk-1/metadata").unwrap();
    store.remove("j/chk-1/metadata").unwrap();
    assert_eq!(store.list("j").unwrap(), ["j/chk-10/v0-0-1-0"]);
}

#[test]
fn empty_folders_go_and_the_root_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.put("j/chk-1/metadata", b"x").unwrap();
    store.put("j/chk-2/metadata", b"x").unwrap();
    store.remove("j/chk-1/metadata").unwrap();
    assert!(!dir.path().join("j/chk-1").exists());
    store.put("j/chk-1/metadata", b"x").unwrap();
    store.remove("j/chk-1/metadata").unwrap();
    store.remove("j/chk-2/metadata").unwrap();
    assert_eq!(everything(dir.path()), Vec::<String>::new());
    store.put("j/chk-3/metadata", b"x").unwrap();
}

#[test]
fn what_a_crash_left_is_no_object_is_in_no_way_and_goes_with_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.put("j/chk-1/metadata", b"old").unwrap();
    let leftover = dir.path().join(format!("j/chk-1/.metadata.{}-0.tmp", std::process::id()));
    fs::write(&leftover, b"ne").unwrap();
    assert_eq!(store.list("j").unwrap(), ["j/chk-1/metadata"]);
    store.put("j/chk-1/metadata", b"new").unwrap();
    assert_eq!(store.get("j/chk-1/metadata").unwrap(), b"new");
    // It is not ours to end somebody else's write.
    assert!(leftover.exists());
    fs::create_dir_all(dir.path().join("j/chk-2")).unwrap();
    fs::write(dir.path().join("j/chk-2/.v0-0-1-0.7-0.tmp"), b"ne").unwrap();
    store.remove_all("j/chk-2").unwrap();
    store.remove_all("j/chk-2").unwrap();
    assert!(!dir.path().join("j/chk-2").exists());
    store.remove_all("j").unwrap();
    assert_eq!(everything(dir.path()), Vec::<String>::new());
}

#[test]
fn a_folder_removed_by_another_process_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    store.put("j/chk-1/metadata", b"x").unwrap();
    fs::remove_dir_all(dir.path().join("j")).unwrap();
    store.put("j/chk-1/metadata", b"y").unwrap();
    assert_eq!(store.get("j/chk-1/metadata").unwrap(), b"y");
}

#[test]
fn a_write_that_fails_leaves_the_old_object_and_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    fs::create_dir_all(dir.path().join("j/taken/below")).unwrap();
    let refused = store.put("j/taken", b"x").unwrap_err();
    assert!(refused.to_string().contains("move it away"), "{refused}");
    assert!(everything(dir.path()).iter().all(|path| !path.ends_with(".tmp")));
}

#[test]
fn a_file_in_the_way_is_told_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for root in [dir.path().join("file"), dir.path().join("file/below")] {
        let refused = store(&root).put("j/x", b"").unwrap_err();
        assert!(refused.to_string().contains("in the way"), "{refused}");
    }
}

#[test]
fn names_do_not_lead_out_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir.path().join("root"));
    for name in ["", "../x", "/etc/x", "a/../../x", ".hidden"] {
        assert!(matches!(store.put(name, b""), Err(StoreError::Failed { .. })), "{name:?}");
        assert!(store.get(name).is_err() && store.list(name).is_err(), "{name:?}");
        assert!(store.remove(name).is_err() && store.remove_all(name).is_err(), "{name:?}");
    }
    assert!(!dir.path().join("x").exists());
}

#[test]
fn racing_writers_and_a_remover_never_show_half_an_object() {
    let dir = tempfile::tempdir().unwrap();
    let stores: Vec<FileStore> = (0..3).map(|_| store(dir.path())).collect();
    std::thread::scope(|scope| {
        for (writer, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let content = vec![u8::try_from(writer).unwrap(); 10_000];
                for round in 0..60 {
                    store.put("j/chk-1/metadata", &content).unwrap();
                    if round % 3 == writer {
                        store.remove("j/chk-1/metadata").unwrap();
                    }
                    match store.get("j/chk-1/metadata") {
                        Ok(found) => {
                            assert!(found.len() == 10_000 && found.iter().all(|byte| *byte == found[0]));
                        }
                        Err(error) => assert!(matches!(error, StoreError::NotFound { .. }), "{error}"),
                    }
                }
            });
        }
    });
    assert!(everything(dir.path()).iter().all(|path| !path.ends_with(".tmp")));
}

/// A small file system of its own; `None` where this user may not make one.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "none"]).arg(dir.path());
        let went = command.output().is_ok_and(|output| output.status.success());
        if !went {
            eprintln!("skipped: this user may not mount a file system");
        }
        went.then(|| Self(dir))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_keeps_the_old_object_and_gets_its_bytes_back() {
    let Some(mounted) = Mounted::new("size=64k") else { return };
    let store = store(mounted.0.path());
    store.put("j/x", b"old").unwrap();
    let refused = store.put("j/x", &vec![1; 200_000]).unwrap_err();
    assert!(refused.to_string().contains("make room"), "{refused}");
    assert_eq!(store.get("j/x").unwrap(), b"old");
    store.put("j/x", &vec![1; 20_000]).unwrap();
}

#[test]
fn a_read_only_file_system_is_told_with_the_way_out() {
    let Some(mounted) = Mounted::new("ro") else { return };
    let refused = store(mounted.0.path()).put("j/x", b"").unwrap_err();
    assert!(refused.to_string().contains("writable"), "{refused}");
}
