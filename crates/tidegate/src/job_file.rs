//! Reading the job file that a command names.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use job::file::JobFile;
use job::graph::JobGraph;

use crate::failure::Failure;

/// The job file and what is changed in it.
#[derive(Debug, Clone, Args)]
pub(crate) struct JobFileArgs {
    /// The job file (YAML or JSON)
    #[arg(value_name = "JOB.yaml")]
    pub(crate) file: PathBuf,

    /// Set a key of the job file, as in parallelism=4 or steps.customer.capacity=50; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
}

impl JobFileArgs {
    /// Reads, changes and checks the file, and makes its paths absolute.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has mistakes. All of them are found at once.
    pub(crate) fn load(&self) -> Result<JobFile, Failure> {
        let unreadable = |cause| Failure::JobFileUnreadable { file: self.file.clone(), cause };
        let text = fs::read_to_string(&self.file).map_err(unreadable)?;
        let mut file = JobFile::read(&text, &self.file.to_string_lossy())?;
        for (key, value) in &self.set {
            file.apply_set(key, value)?;
        }
        file.check()?;
        let absolute = std::path::absolute(&self.file).map_err(unreadable)?;
        file.absolute_paths(absolute.parent().unwrap_or(Path::new("/")));
        Ok(file)
    }

    /// Reads and plans the file, with the checks of [`Self::load`].
    pub(crate) fn plan(&self) -> Result<JobGraph, Failure> {
        Ok(job::plan::plan(&self.load()?)?)
    }
}

/// Finds what the job needs and does not find, and what is in its way.
pub(crate) fn check_surroundings(file: &JobFile, graph: &JobGraph) -> Result<(), Failure> {
    connectors::check::check_job(graph).map_err(|findings| {
        let mistake =
            |f: &connectors::check::Finding| file.mistake_at(&f.key, f.problem.to_string()).to_string();
        Failure::Findings(findings.iter().map(mistake).collect())
    })
}

/// `KEY=VALUE`; the value may have further equals signs and may be empty.
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as parallelism=4 or steps.customer.capacity=50".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_ends_its_key_at_the_first_equals_sign() {
        assert_eq!(assignment("a.b=c=d"), Ok(("a.b".into(), "c=d".into())));
        assert_eq!(assignment("a="), Ok(("a".into(), String::new())));
        for text in ["", "a", "=b"] {
            assert!(assignment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn relative_paths_are_meant_from_the_folder_of_the_job_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("big.yaml");
        let text = "name: big\nsource: {file: {path: in/*.jsonl}}\nsteps: [{filter: a > 1}]\nsink: {file: {path: out.jsonl}}\n";
        fs::write(&file, text).unwrap();
        let args = JobFileArgs { file, set: vec![("parallelism".into(), "3".into())] };
        let json = args.load().unwrap().to_json();
        let folder = folder.path().display();
        assert!(json.contains(&format!("\"{folder}/in/*.jsonl\"")), "{json}");
        assert!(json.contains(&format!("\"{folder}/out.jsonl\"")), "{json}");
        assert_eq!(args.plan().unwrap().slots(), 3);
    }
}
