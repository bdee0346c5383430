//! Savepoints on the disk: written whole, and begun with.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoint::{CheckpointStore, Stores, read_state, savepoint, write_state};
use connectors::sink;
use connectors::sink::file::SavedEnd;
use job::file::JobFile;
use job::graph::JobGraph;
use job::options::FileSinkOptions;
use runtime_core::JobId;
use wire::v1;

use crate::checkpoint::mapping::{self, committed_length};
use crate::checkpoint::{CheckpointLog as _, CheckpointPointer, CompletedCheckpoint, Mapping, fits};
use crate::job_store::{JobFolder, StoredSavepoint};
use crate::scheduler::Beginning;

/// Output is copied by so many bytes at a time.
const PIECE: u64 = 4 << 20;

/// Writes a savepoint: the output that is staged and not visible, then the metadata, which completes it. Nothing in it
/// points outside of its folder but the paths of inputs and outputs.
pub(super) fn write(
    stores: &dyn Stores,
    url: &str,
    mut metadata: v1::CheckpointMetadata,
) -> Result<(), String> {
    let store = stores.open(url).map_err(|e| e.to_string())?;
    let subtasks = metadata.vertices.iter_mut().flat_map(|vertex| &mut vertex.subtasks);
    let staged: Vec<v1::StagedFile> = subtasks
        .filter_map(|subtask| subtask.snapshot.as_mut())
        .flat_map(|snapshot| std::mem::take(&mut snapshot.staged))
        .collect();
    for staged in staged {
        if let Some(output) = save(&*store, metadata.outputs.len(), &staged)? {
            metadata.outputs.push(output);
        }
    }
    savepoint::write(&*store, &metadata).map_err(|e| e.to_string())
}

/// Copies staged output; none where it is visible already, of which the task has not heard yet.
fn save(
    store: &dyn CheckpointStore,
    number: usize,
    staged: &v1::StagedFile,
) -> Result<Option<v1::SavedOutput>, String> {
    let failed = |error: io::Error| format!("the staged output `{}`: {error}", staged.staged_path);
    let mut file = match File::open(&staged.staged_path) {
        Err(error) if error.kind() == ErrorKind::NotFound && is_visible(staged) => return Ok(None),
        file => file.map_err(failed)?,
    };
    let mut output = v1::SavedOutput {
        final_path: staged.final_path.clone(),
        length: 0,
        offset: staged.offset,
        pieces: Vec::new(),
    };
    loop {
        let mut piece = Vec::new();
        let read = (&mut file).take(PIECE).read_to_end(&mut piece).map_err(failed)?;
        if read == 0 {
            break;
        }
        output.length += read as u64;
        let name = savepoint::output_name(number, output.pieces.len());
        output.pieces.push(write_state(store, &name, &piece).map_err(|e| e.to_string())?);
    }
    if output.length != staged.length {
        return Err(format!(
            "the staged output `{}` holds {} bytes, but {} were written to it; something else changed it",
            staged.staged_path, output.length, staged.length
        ));
    }
    Ok(Some(output))
}

fn is_visible(staged: &v1::StagedFile) -> bool {
    let Ok(found) = fs::metadata(&staged.final_path) else { return false };
    match staged.offset {
        Some(offset) => found.len() >= offset.saturating_add(staged.length),
        None => found.len() == staged.length,
    }
}

/// Makes everything ready for the first deployment of a job that begins with a savepoint, and remembers it. May be
/// repeated.
pub(super) fn begin(
    graph: &JobGraph,
    folder: &JobFolder,
    from: &StoredSavepoint,
    stores: &dyn Stores,
) -> Result<Beginning, String> {
    let metadata = savepoint::read(stores, &from.url).map_err(|e| e.to_string())?;
    let old = plan_of(&metadata)?;
    let store = stores.open(&from.url).map_err(|e| e.to_string())?;
    for output in &metadata.outputs {
        let continued = graph.sinks().any(|sink| is_of(output, sink));
        if !continued && !Path::new(&output.final_path).exists() {
            tracing::warn!(
                output = output.final_path,
                "an output that the job does not continue was taken away; what the savepoint has of it stays there"
            );
            continue;
        }
        restore(&*store, output)?;
    }
    for sink in graph.sinks() {
        let prepared = match committed_length(&metadata, &old, sink) {
            Some(committed_length) => {
                let checkpoint = metadata.checkpoint;
                sink::file::prepare_continued(sink, SavedEnd { checkpoint, committed_length })
            }
            None => sink::file::prepare(sink),
        };
        prepared.map_err(|e| e.to_string())?;
    }
    let splits = mapping::splits(&metadata, graph);
    let completed = completed(&from.url, metadata, &old, graph);
    folder.completed(std::slice::from_ref(&completed.pointer)).map_err(|e| e.to_string())?;
    folder.prepared(&splits).map_err(|e| e.to_string())?;
    Ok((splits, Some(completed)))
}

fn restore(store: &dyn CheckpointStore, output: &v1::SavedOutput) -> Result<(), String> {
    let write = |file: &mut File| {
        for piece in &output.pieces {
            file.write_all(&read_state(store, piece).map_err(io::Error::other)?)?;
        }
        Ok(())
    };
    sink::file::restore(Path::new(&output.final_path), output.length, output.offset, write)
        .map_err(|e| e.to_string())
}

/// Whether a piece of output is of this sink.
fn is_of(output: &v1::SavedOutput, sink: &FileSinkOptions) -> bool {
    let path = Path::new(&output.final_path);
    if sink.parts { path.parent() == Some(&*without_slash(&sink.path)) } else { path == sink.path }
}

fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A savepoint that was read, as this job begins with it.
pub(super) fn completed(
    url: &str,
    metadata: v1::CheckpointMetadata,
    old: &JobGraph,
    graph: &JobGraph,
) -> CompletedCheckpoint {
    let mapping = Mapping::of(&metadata, url, old, graph);
    let pointer = CheckpointPointer {
        id: metadata.checkpoint,
        metadata: savepoint::METADATA.to_owned(),
        completed_at: metadata.completed_at,
        store: Some(url.to_owned()),
    };
    CompletedCheckpoint { pointer, metadata, mapping: Some(Box::new(mapping)) }
}

/// The plan of the job that took a savepoint.
pub(super) fn plan_of(metadata: &v1::CheckpointMetadata) -> Result<JobGraph, String> {
    let cannot =
        |cause: String| format!("this program does not take the job file in the savepoint any more: {cause}");
    let text = std::str::from_utf8(&metadata.job_file).map_err(|e| cannot(e.to_string()))?;
    JobFile::parse(text, "the job file in the savepoint")
        .and_then(|file| job::plan::plan(&file))
        .map_err(|errors| cannot(errors.to_string()))
}

/// Whether a job can begin with a savepoint: asked before it is accepted. Every part of the savepoint is read. Yields with
/// it the paths of outputs that are continued, which may be there.
pub(crate) fn check(
    stores: &Arc<dyn Stores>,
    url: &str,
    graph: &JobGraph,
) -> Result<(StoredSavepoint, Vec<PathBuf>), Vec<String>> {
    let one = |reason: String| vec![reason];
    let metadata = savepoint::read(&**stores, url).map_err(|e| one(e.to_string()))?;
    let held = savepoint::verify(&**stores, url, &metadata).map_err(|e| one(e.to_string()))?;
    let old = plan_of(&metadata).map_err(one)?;
    let mut reasons = fits::misfits(&old, graph, &held);
    let mut continued = Vec::new();
    for sink in graph.sinks() {
        let Some(committed_length) = committed_length(&metadata, &old, sink) else { continue };
        let saved = metadata.outputs.iter().filter(|output| is_of(output, sink));
        let visible = saved.map(|output| output.offset.unwrap_or(0)).min().unwrap_or(committed_length);
        let end = SavedEnd { checkpoint: metadata.checkpoint, committed_length };
        if let Err(error) = sink::file::check_continued(sink, end, visible) {
            reasons.push(error.to_string());
        }
        continued.push(sink.path.clone());
    }
    for split in metadata.splits.iter().filter(|split| !metadata.finished_splits.contains(&split.id)) {
        if !Path::new(&split.path).is_file() {
            reasons.push(format!(
                "the input `{}`, which the savepoint reads on, is not there; put it back",
                split.path
            ));
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let origin = JobId::try_from(&*metadata.origin_job_id).map_err(|e| one(e.to_string()))?;
    Ok((StoredSavepoint { url: url.to_owned(), origin: origin.to_string() }, continued))
}
