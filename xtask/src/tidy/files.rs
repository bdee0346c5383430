//! The text files of the project: what is in the folder without what tools made there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Bigger files are data.
const MOST: u64 = 1 << 20;

/// Path (relative, with `/`) and content of every text file, sorted. Folders that cargo made (they carry a
/// `CACHEDIR.TAG`), the repository's own and state folders are left out.
pub(super) fn read(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut tree = BTreeMap::new();
    walk(root, "", &mut tree)?;
    Ok(tree)
}

fn walk(root: &Path, below: &str, tree: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let made = entry.path().join("CACHEDIR.TAG").exists();
            if !made && !matches!(name.as_str(), ".git" | "target" | "tidegate-state") {
                walk(root, &path, tree)?;
            }
        } else if kind.is_file() && entry.metadata()?.len() <= MOST {
            // What is no UTF-8 is data as well.
            if let Ok(content) = fs::read_to_string(entry.path()) {
                tree.insert(path, content);
            }
        }
    }
    Ok(())
}
