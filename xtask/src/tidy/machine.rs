//! Folders of one machine have no place in a project for all.

use std::path::Path;

use super::Complaint;

/// What no file may name: where people's folders are, and where this copy of the project happens to lie.
pub(super) fn folders(root: &Path) -> Vec<String> {
    // In pieces, or this file would name them.
    let mut folders: Vec<String> = ["home", "Users", "root"].iter().map(|name| format!("/{name}/")).collect();
    let here = [Some(root.to_owned()), std::env::var_os("CARGO_TARGET_DIR").map(Into::into)];
    // Shorter ones, such as `/src` in a container, are words of any text.
    folders.extend(
        here.into_iter().flatten().map(|path| path.display().to_string()).filter(|path| path.len() > 5),
    );
    folders
}

pub(super) fn check(path: &str, content: &str, folders: &[String]) -> Vec<Complaint> {
    content
        .lines()
        .enumerate()
        .flat_map(|(place, line)| {
            folders.iter().filter(|folder| names(line, folder)).map(move |f| (place + 1, f))
        })
        .map(|(line, folder)| Complaint::error(path, line, format!("`{folder}` is a folder of one machine")))
        .collect()
}

/// Whether the line holds the path from its root on: in `https://host/home/x` it does not.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(place, _)| {
        let before = line.get(..place).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '-' | '_' | '}' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_and_parts_of_others_are_not() {
        let folders = ["/srv/people/".to_owned()];
        let content = "a /srv/people/x\nhttps://h.org/srv/people/x\n\"/srv/people/y\"\n{root}/srv/people/\n";
        let lines: Vec<usize> = check("a", content, &folders).iter().map(|c| c.line).collect();
        assert_eq!(lines, [1, 3]);
    }

    #[test]
    fn the_copy_at_hand_is_among_the_folders() {
        assert!(folders(Path::new("/somewhere/tidegate")).contains(&"/somewhere/tidegate".to_owned()));
    }
}
