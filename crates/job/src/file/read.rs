//! The job as a whole: from the tree to checked options.

use super::node::{Node, Value};
use super::read_restart::{checkpoints, restart};
use super::read_step::{Defaults, step};
use super::section::{Findings, Item, Section};
use super::spec::{JobSpec, StepKind, StepSpec};
use crate::options::{FileSinkOptions, FileSourceOptions, OnFailure, Order, RestartStrategy, SplitMode};

/// Flink's upper limit: key groups are numbered with 15 bits there, and savepoints keep the number for ever.
const MOST_KEY_GROUPS: i128 = 32_768;
/// What a record or an answer may take at most; places within a line are counted in 32 bits.
pub(super) const LARGEST: u64 = 1 << 30;

const JOB_KEYS: &[&str] = &[
    "name",
    "parallelism",
    "max_parallelism",
    "checkpoints",
    "restart",
    "source",
    "steps",
    "sink",
    "dead_letters",
];

/// Reads the whole job, noting every mistake.
pub(super) fn job<'a>(root: &'a Node, findings: &'a Findings<'a>) -> Option<JobSpec> {
    let job = Item { node: root, path: String::new(), findings }.section(JOB_KEYS)?;
    let name = job.require("name", "the job's name").and_then(|item| name(&item));
    let max_parallelism =
        job.get("max_parallelism").and_then(|item| item.whole(1, MOST_KEY_GROUPS)).unwrap_or(128);
    let limits = Limits { max_parallelism };
    let parallelism = limits.parallelism(&job);
    let checkpoints_item = job.get("checkpoints");
    let checkpoints = checkpoints_item.as_ref().and_then(checkpoints);
    let restart = match job.get("restart") {
        Some(item) => restart(&item),
        None if checkpoints_item.is_some() => Some(RestartStrategy::exponential_delay()),
        None => Some(RestartStrategy::None),
    };
    let dead_letters_item = job.get("dead_letters");
    let dead_letters = dead_letters_item.as_ref().and_then(|item| sink(item, &limits, true));
    let defaults = Defaults {
        on_failure: if dead_letters_item.is_some() { OnFailure::DeadLetter } else { OnFailure::Fail },
        has_dead_letters: dead_letters_item.is_some(),
    };
    let steps = steps(&job, &limits, defaults);
    let source = job.require("source", "where records come from").and_then(|item| source(&item, &limits));
    let sink = job.require("sink", "where records go").and_then(|item| sink(&item, &limits, false));
    if let (Some(sink), Some(dead), Some(item)) = (&sink, &dead_letters, &dead_letters_item)
        && sink.options.path == dead.options.path
    {
        item.note("the dead letters cannot be written to where the records go");
    }
    let (steps, source, sink) = (steps?, source?, sink?);
    check_split(&job, &source.options, &steps);
    Some(JobSpec {
        name: name?,
        parallelism: parallelism.unwrap_or(1),
        max_parallelism,
        checkpoints,
        restart: restart?,
        source: source.options,
        source_parallelism: source.parallelism,
        steps,
        sink: sink.options,
        sink_parallelism: sink.parallelism,
        dead_letters: dead_letters.map(|sink| sink.options),
    })
}

/// A name that can stand in a line of a log or of a table.
pub(super) fn name(item: &Item<'_>) -> Option<String> {
    let text = item.text()?;
    if text.chars().any(char::is_control) || text.chars().count() > 200 || text.trim() != text {
        item.note("a name has at most 200 characters, no line ends and no spaces at its ends");
        return None;
    }
    Some(text.to_owned())
}

/// What holds for every part of the job.
pub(super) struct Limits {
    max_parallelism: u32,
}

impl Limits {
    /// The parallelism that a section asks for.
    pub(super) fn parallelism(&self, section: &Section<'_>) -> Option<u32> {
        let item = section.get("parallelism")?;
        if let Value::Whole(value) = item.node.value
            && value > i128::from(self.max_parallelism)
        {
            item.note(format!("{value} is above max_parallelism, which is {}", self.max_parallelism));
            return None;
        }
        item.whole(1, self.max_parallelism.into())
    }

    /// The parallelism of a source, step or sink, which may stand beside its kind or within it.
    pub(super) fn parallelism_of(&self, outer: &Section<'_>, inner: Option<&Section<'_>>) -> Option<u32> {
        let beside = self.parallelism(outer);
        let within = inner.and_then(|inner| self.parallelism(inner));
        if let (Some(beside), Some(within)) = (beside, within)
            && beside != within
            && let Some(item) = inner.and_then(|inner| inner.get("parallelism"))
        {
            item.note(format!("contradicts the parallelism {beside} beside it"));
        }
        within.or(beside)
    }
}

/// Options with the parallelism asked for.
struct Placed<T> {
    options: T,
    parallelism: Option<u32>,
}

fn source(item: &Item<'_>, limits: &Limits) -> Option<Placed<FileSourceOptions>> {
    let outer = item.section(&["file", "parallelism"])?;
    let (_, file) = outer.kind(&["file"], "the kind of source")?;
    let file = file.section(&[
        "path",
        "split",
        "event_time",
        "watermark_lag",
        "max_rate",
        "max_record",
        "parallelism",
    ])?;
    let parallelism = limits.parallelism_of(&outer, Some(&file));
    let path =
        file.require("path", "a file, a directory or a glob").and_then(|item| item.text().map(str::to_owned));
    let split = file.get("split").and_then(|item| {
        item.choice(&[("auto", SplitMode::Auto), ("file", SplitMode::File), ("range", SplitMode::Range)])
    });
    let options = FileSourceOptions {
        path: path?,
        split: split.unwrap_or(SplitMode::Auto),
        event_time: file.get("event_time").and_then(|item| item.text().map(str::to_owned)),
        watermark_lag: file.get("watermark_lag").and_then(|item| item.duration()).unwrap_or_default(),
        max_rate: file
            .get("max_rate")
            .and_then(|item| item.number("a number of records per second above 0", |rate| rate > 0.0)),
        max_record: file.get("max_record").and_then(|item| item.size(1, LARGEST)).unwrap_or(1 << 20),
    };
    Some(Placed { options, parallelism })
}

fn sink(item: &Item<'_>, limits: &Limits, dead_letters: bool) -> Option<Placed<FileSinkOptions>> {
    let outer = item.section(if dead_letters { &["file"] } else { &["file", "parallelism"] })?;
    let (_, file) = outer.kind(&["file"], "the kind of sink")?;
    let file = file.section(if dead_letters {
        &["path", "overwrite"]
    } else {
        &["path", "overwrite", "parallelism"]
    })?;
    let parallelism = if dead_letters { None } else { limits.parallelism_of(&outer, Some(&file)) };
    let overwrite = file.get("overwrite").and_then(|item| item.boolean()).unwrap_or(false);
    let path_item = file.require("path", "a file, or a folder with `/` at its end")?;
    let path = path_item.text()?;
    let parts = path.ends_with('/');
    if !parts
        && let Some(parallelism) = parallelism.filter(|p| *p > 1)
        && let Some(item) = file.get("parallelism").or_else(|| outer.get("parallelism"))
    {
        item.note(format!(
            "a single file is written by one subtask, not by {parallelism}; end the path in `/` for a folder of parts"
        ));
    }
    if [".", ".."].contains(&path.rsplit('/').next().unwrap_or_default()) {
        path_item.note("names a folder; end the path in `/` for a folder of parts, or name a file in it");
    }
    let options = FileSinkOptions { path: path.into(), parts, overwrite, dead_letters };
    Some(Placed { options, parallelism })
}

fn steps(job: &Section<'_>, limits: &Limits, defaults: Defaults) -> Option<Vec<StepSpec>> {
    let list = job.require("steps", "what is done with each record, at least one `filter` or `enrich`")?;
    let items = list.list()?;
    if items.is_empty() {
        list.note("there is no step; write at least one `filter` or `enrich`");
        return None;
    }
    let mut filters = 0;
    let steps: Vec<Option<StepSpec>> =
        items.iter().map(|item| step(item, limits, defaults, &mut filters)).collect();
    for (index, (item, step)) in items.iter().zip(&steps).enumerate() {
        let Some(name) = step.as_ref().map(StepSpec::name) else { continue };
        let earlier = steps.iter().take(index).position(|s| s.as_ref().is_some_and(|s| s.name() == name));
        if let Some(earlier) = earlier {
            let named = item.node.get("enrich").and_then(|enrich| enrich.get("name"));
            let place = &named.unwrap_or(item.node).place;
            let path = if named.is_some() { format!("{}.enrich.name", item.path) } else { item.path.clone() };
            item.findings.note(place, &path, format!("the name {name} is taken by steps[{earlier}]"));
        }
    }
    steps.into_iter().collect()
}

impl StepSpec {
    /// The name in messages, metrics and dead letters.
    pub(crate) fn name(&self) -> &str {
        match &self.kind {
            StepKind::Filter(filter) => &filter.name,
            StepKind::Enrich(enrich) => &enrich.name,
        }
    }

    /// Whether each file has to stay in one subtask because of this step.
    pub(crate) fn needs_whole_files(&self) -> bool {
        matches!(&self.kind, StepKind::Enrich(enrich) if enrich.order != Order::Unordered)
    }
}

/// Order within a file cannot be kept when the file is cut.
fn check_split(job: &Section<'_>, source: &FileSourceOptions, steps: &[StepSpec]) {
    let ordering = steps.iter().find(|step| step.needs_whole_files());
    if source.split == SplitMode::Range
        && let Some(step) = ordering
        && let Some(item) = job.get("source").and_then(|s| s.open_section()).and_then(|s| s.get("file"))
        && let Some(split) = item.open_section().and_then(|file| file.get("split"))
    {
        split.note(format!(
            "files cannot be cut into ranges, as the step {} keeps their order; write auto or file",
            step.name()
        ));
    }
}
