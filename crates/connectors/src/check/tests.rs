//! Findings on graphs made by hand.

use std::time::Duration;

use job::graph::Vertex;
use job::options::{
    EnrichOptions, FileSinkOptions, FileSourceOptions, OnEmpty, OnFailure, Order, RestartStrategy, Retry,
    SplitMode, TableOptions,
};
use runtime_core::VertexId;
use tempfile::TempDir;

use super::*;

fn source(path: &Path) -> OperatorSpec {
    OperatorSpec::Source(SourceOptions::File(FileSourceOptions {
        path: path.to_str().unwrap().to_owned(),
        split: SplitMode::File,
        event_time: None,
        watermark_lag: Duration::ZERO,
        max_rate: None,
        max_record: 1 << 20,
    }))
}

fn table(file: &Path) -> OperatorSpec {
    OperatorSpec::Enrich(EnrichOptions {
        name: "plane".to_owned(),
        order: Order::Ordered,
        key: None,
        max_in_flight_per_key: 1,
        capacity: 1,
        timeout: None,
        attempt_timeout: None,
        retry: Retry::None,
        on_empty: OnEmpty::Keep,
        on_failure: OnFailure::Fail,
        into: None,
        max_answer: 1,
        call: CallOptions::Table(TableOptions {
            file: file.to_path_buf(),
            key: "id".to_owned(),
            by: "id".to_owned(),
        }),
    })
}

fn sink(path: &Path, dead_letters: bool) -> OperatorSpec {
    let path = path.to_path_buf();
    OperatorSpec::Sink(SinkOptions::File(FileSinkOptions {
        path,
        parts: false,
        overwrite: true,
        dead_letters,
    }))
}

fn keys(operators: Vec<OperatorSpec>) -> Vec<String> {
    let vertex = Vertex { id: VertexId(0), name: "all".to_owned(), parallelism: 1, operators };
    let graph = JobGraph {
        name: "job".to_owned(),
        max_parallelism: 128,
        restart: RestartStrategy::None,
        checkpoints: None,
        vertices: vec![vertex],
        edges: Vec::new(),
        keeps_input_order: true,
    };
    check_job(&graph).err().unwrap_or_default().into_iter().map(|finding| finding.key).collect()
}

fn folder_with(file: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, "").unwrap();
    (folder, path)
}

#[test]
fn a_job_whose_inputs_are_there_and_whose_outputs_are_not_is_well() {
    let (folder, input) = folder_with("in.jsonl");
    let out = sink(&folder.path().join("out.jsonl"), false);
    assert_eq!(keys(vec![source(&input), table(&input), out]), [""; 0]);
}

#[test]
fn everything_that_is_missing_is_found_at_once_with_its_key() {
    let (folder, _) = folder_with("in.jsonl");
    let nowhere = folder.path().join("nowhere.jsonl");
    let found = keys(vec![source(&nowhere), table(&nowhere), sink(Path::new("/"), false)]);
    assert_eq!(found, ["source.file.path", "steps.plane.call.table.file", "sink.file.path"]);
}

#[test]
fn an_output_that_is_an_input_or_another_output_is_found() {
    let (folder, input) = folder_with("in.jsonl");
    let out = folder.path().join("out.jsonl");
    assert_eq!(keys(vec![source(&input), sink(&input, false)]), ["sink.file.path"]);
    assert_eq!(keys(vec![source(&input), sink(&out, false), sink(&out, true)]), ["dead_letters.file.path"]);
}
