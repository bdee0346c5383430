//! Relative links of Markdown pages.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::Complaint;

pub(super) fn check(
    root: &Path,
    path: &str,
    content: &str,
    tree: &BTreeMap<String, String>,
) -> Vec<Complaint> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut complaints = Vec::new();
    for (line, link) in links(content) {
        let (file, heading) =
            link.split_once('#').map_or((link.as_str(), None), |(file, heading)| (file, Some(heading)));
        let target = if file.is_empty() { Some(PathBuf::from(path)) } else { normal(&folder.join(file)) };
        let Some(target) = target.filter(|target| root.join(target).exists()) else {
            complaints.push(Complaint::error(path, line, format!("the link `{link}` leads nowhere")));
            continue;
        };
        let page = tree.get(&target.to_string_lossy().into_owned());
        if let (Some(heading), Some(page)) =
            (heading, page.filter(|_| target.extension().is_some_and(|e| e == "md")))
            && !headings(page).contains(&heading.to_owned())
        {
            complaints.push(Complaint::error(path, line, format!("the link `{link}` leads to no heading")));
        }
    }
    complaints
}

/// Line and target of every link that is not to another site. Code is no text.
fn links(content: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text_lines(content) {
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        for (_, rest) in
            prose.match_indices("](").filter_map(|(at, s)| Some((at, prose.get(at + s.len()..)?)))
        {
            let Some((target, _)) = rest.split_once(')') else { continue };
            let target = target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// Anchors of a page, as hosts of repositories make them.
fn headings(content: &str) -> Vec<String> {
    text_lines(content)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

fn text_lines(content: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    content.lines().enumerate().filter_map(move |(place, line)| {
        let fence = line.trim_start().starts_with("```");
        if fence {
            in_code = !in_code;
        }
        (!in_code && !fence).then_some((place + 1, line))
    })
}

/// The path without `.` and `..`; `None` where it leads out of the project.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found_and_code_and_other_sites_are_not_looked_at() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        let page = "# A *first* page\n[ok](b.md) [top](../README.md#what-is-this) [self](#a-first-page)\n\
                    [web](https://x.y/z) [mail](mailto:a@b)\n`[code](no.md)`\n```\n[fence](no.md)\n```\n\
                    [gone](no.md)\n[out](../../x.md)\n[absolute](/etc/passwd)\n[heading](b.md#nothing)\n";
        let tree = BTreeMap::from([
            ("docs/a.md".to_owned(), page.to_owned()),
            ("docs/b.md".to_owned(), "# B\n".to_owned()),
            ("README.md".to_owned(), "## What is this?\n".to_owned()),
        ]);
        for (path, content) in &tree {
            std::fs::write(root.path().join(path), content).unwrap();
        }
        let complaints = check(root.path(), "docs/a.md", page, &tree);
        assert_eq!(complaints.iter().map(|c| c.line).collect::<Vec<_>>(), [8, 9, 10, 11], "{complaints:?}");
    }
}
