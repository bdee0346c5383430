//! What the pages show is right: job files can be planned, and what is quoted from a file stands in that file.

use std::path::{Path, PathBuf};
use std::{fs, io};

use job::file::JobFile;
use job::plan::plan;

/// A fenced block of a page.
struct Block {
    page: String,
    /// Of the first line within the fence, from 1.
    line: usize,
    /// What stands behind the opening fence.
    info: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in a folder and those below, by their paths from the root.
fn pages(folder: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root().join(folder))? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            pages(&path, found)?;
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    Ok(())
}

fn all_blocks() -> io::Result<Vec<Block>> {
    let mut paths = vec!["README.md".to_owned()];
    pages("docs", &mut paths)?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        found.extend(blocks(&path, &fs::read_to_string(root().join(&path))?));
    }
    Ok(found)
}

fn blocks(page: &str, content: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (place, line) in content.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let info = info.trim().to_owned();
                open = Some(Block { page: page.to_owned(), line: place + 2, info, text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a fence is not closed");
    found
}

/// The file that a block says it is taken from, in its first line, and the rest of the block.
fn quotation(block: &Block) -> Option<(&str, &str)> {
    let (first, rest) = block.text.split_once('\n')?;
    let path = first.strip_prefix("// from ").or_else(|| first.strip_prefix("# from "))?;
    Some((path, rest))
}

/// A text as it is compared: documentation without its marks and without the lines that rustdoc hides, and all lines
/// without indentation, since a quotation from within a function has another one.
fn as_read(content: &str) -> String {
    let is_documented = content.starts_with("//!");
    let mut text = String::new();
    for line in content.lines().map(|line| line.strip_prefix("//!").unwrap_or(line).trim_start()) {
        if !(is_documented && line.starts_with("# ")) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn every_job_file_of_the_pages_can_be_planned() {
    let jobs: Vec<Block> =
        all_blocks().unwrap().into_iter().filter(|block| block.info == "yaml job").collect();
    assert!(!jobs.is_empty());
    for block in &jobs {
        let name = format!("{}:{}", block.page, block.line);
        let planned = JobFile::parse(&block.text, &name).and_then(|file| plan(&file));
        if let Err(errors) = planned {
            panic!("{errors}");
        }
    }
}

#[test]
fn what_the_pages_quote_stands_in_the_file() {
    let blocks = all_blocks().unwrap();
    let quotations: Vec<_> = blocks.iter().filter_map(|block| Some((block, quotation(block)?))).collect();
    assert!(!quotations.is_empty());
    for (block, (path, text)) in quotations {
        let content = fs::read_to_string(root().join(path))
            .unwrap_or_else(|error| panic!("{}:{}: `{path}`: {error}", block.page, block.line));
        let stands = as_read(&content).contains(&as_read(text));
        assert!(stands, "{}:{}: this does not stand in `{path}`:\n{text}", block.page, block.line);
    }
}

#[test]
fn a_block_is_found_with_its_mark_and_its_place() {
    let found = blocks("p.md", "text\n```yaml job\n# from a.yaml\nname: j\n```\n\n```\nplain\n```\n");
    let seen: Vec<_> = found.iter().map(|b| (b.line, b.info.as_str(), b.text.as_str())).collect();
    assert_eq!(seen, [(3, "yaml job", "# from a.yaml\nname: j\n"), (8, "", "plain\n")]);
    assert_eq!(quotation(&found[0]), Some(("a.yaml", "name: j\n")));
    assert_eq!(quotation(&found[1]), None);
}

#[test]
fn documentation_is_read_without_its_marks_hidden_lines_and_indentation() {
    assert_eq!(
        as_read("//! Doc.\n//!\n//! # hidden\n//!     let a;\nfn f() {}\n"),
        "Doc.\n\nlet a;\nfn f() {}\n"
    );
    assert_eq!(as_read("# A comment.\nname: j\n"), "# A comment.\nname: j\n");
}
