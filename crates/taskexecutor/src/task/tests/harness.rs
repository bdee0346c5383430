//! Task executors without their control plane: jobs are planned, deployed by hand and awaited.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use checkpoint::MemoryStores;
use connectors::call::RustCalls;
use connectors::sink::file::{commit, prepare};
use connectors::source::file::{FileSplit, enumerate};
use job::file::JobFile;
use job::graph::{JobGraph, OperatorSpec};
use job::options::{SinkOptions, SourceOptions};
use job::plan::plan;
use runtime_core::time::TokioClock;
use runtime_core::{AttemptId, Epoch, EpochMillis, JobId, VertexId};
use tokio::runtime::Handle;
use wire::grpc::{GrpcOptions, GrpcTransport};
use wire::network::{InMemoryNetwork, NetworkOptions};
use wire::{Endpoints, Serving, Transport, v1};

use super::checkpointed::Completed;
use crate::exchange::{Channels, DataEndpoint};
use crate::task::{
    ChannelTarget, CheckpointAnswer, InputGate, NextSplit, OutputGate, Placement, SplitError, SplitProvider,
    TaskDescriptor, TaskEvent, TaskHandle, TaskServices, TaskState, spawn,
};

const JOB: JobId = JobId::from_u128(0xfeed);

/// Hands out splits in their order, to whoever asks first; those that were being read, to the same subtask before.
struct Splits {
    left: Mutex<Vec<FileSplit>>,
    resumed: Mutex<BTreeMap<u32, FileSplit>>,
    given: Mutex<BTreeMap<(AttemptId, u64), Option<FileSplit>>>,
    max_rate: Option<f64>,
}

#[async_trait]
impl SplitProvider for Splits {
    async fn next_split(&self, attempt: AttemptId, request: u64) -> Result<NextSplit, SplitError> {
        let mut left = self.left.lock().unwrap();
        let next = || {
            let resumed = self.resumed.lock().unwrap().remove(&attempt.subtask);
            resumed.or_else(|| if left.is_empty() { None } else { Some(left.remove(0)) })
        };
        let split = self.given.lock().unwrap().entry((attempt, request)).or_insert_with(next).clone();
        Ok(NextSplit { split, max_rate: self.max_rate })
    }
}

struct Node {
    channels: Arc<Channels>,
    transport: Arc<dyn Transport>,
    serving: Serving,
}

pub(super) struct Cluster {
    pub(super) dir: tempfile::TempDir,
    pub(super) calls: RustCalls,
    pub(super) network: InMemoryNetwork,
    pub(super) events: Arc<Mutex<Vec<TaskEvent>>>,
    pub(super) max_rate: Option<f64>,
    pub(super) placement: Placement,
    pub(super) stores: MemoryStores,
    /// What tasks have answered to checkpoints.
    pub(super) answers: Arc<Mutex<Vec<CheckpointAnswer>>>,
    /// What the next deployment begins with, and its number.
    pub(super) restore: Option<Completed>,
    pub(super) life: u32,
    nodes: Vec<Node>,
    clock: TokioClock,
}

impl Cluster {
    pub(super) async fn new(nodes: usize) -> Self {
        Self::on(NetworkOptions::calm(1), nodes).await
    }

    /// A cluster whose network breaks streams when it is cut.
    pub(super) async fn breaking(nodes: usize) -> Self {
        Self::on(NetworkOptions { break_streams: true, ..NetworkOptions::calm(1) }, nodes).await
    }

    async fn on(options: NetworkOptions, nodes: usize) -> Self {
        let mut cluster = Self::empty(options);
        for number in 0..nodes {
            let transport = Arc::new(cluster.network.node(&format!("te{number}")));
            cluster.add(transport, "0.0.0.0:7000").await;
        }
        cluster
    }

    /// A cluster whose task executors speak gRPC over loopback, and whose tasks have threads of their own.
    pub(super) async fn grpc(nodes: usize) -> Self {
        let mut cluster = Self::empty(NetworkOptions::calm(1));
        cluster.placement = Placement::Threads;
        for _ in 0..nodes {
            let transport = GrpcTransport::new(GrpcOptions::default(), Handle::current());
            cluster.add(Arc::new(transport), "127.0.0.1:0").await;
        }
        cluster
    }

    fn empty(options: NetworkOptions) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            calls: RustCalls::default(),
            network: InMemoryNetwork::new(options),
            events: Arc::default(),
            max_rate: None,
            placement: Placement::Local,
            stores: MemoryStores::new(),
            answers: Arc::default(),
            restore: None,
            life: 0,
            nodes: Vec::new(),
            clock: TokioClock::start_at(EpochMillis(1_000_000)),
        }
    }

    async fn add(&mut self, transport: Arc<dyn Transport>, bind: &str) {
        let channels = Channels::new();
        let data = DataEndpoint::new(Arc::clone(&channels));
        let endpoints = Endpoints { data: Some(Arc::new(data)), ..Endpoints::default() };
        let serving = transport.serve(bind, endpoints).await.unwrap();
        self.nodes.push(Node { channels, transport, serving });
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    pub(super) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(super) fn plan(&self, yaml: &str) -> Arc<JobGraph> {
        let mut file = JobFile::parse(yaml, "job.yaml").unwrap();
        file.absolute_paths(self.dir.path());
        Arc::new(plan(&file).unwrap())
    }

    /// Deploys every subtask; `node` says on which task executor, by vertex and subtask.
    pub(super) fn deploy(
        &self,
        graph: &Arc<JobGraph>,
        node: impl Fn(u32, u32) -> usize,
    ) -> BTreeMap<(u32, u32), TaskHandle> {
        self.deploy_only(graph, u32::MAX, node)
    }

    /// As [`deploy`](Self::deploy), up to this vertex.
    pub(super) fn deploy_only(
        &self,
        graph: &Arc<JobGraph>,
        last: u32,
        node: impl Fn(u32, u32) -> usize,
    ) -> BTreeMap<(u32, u32), TaskHandle> {
        let (left, resumed) = self.open_splits(graph);
        let splits = Arc::new(Splits { left, resumed, given: Mutex::default(), max_rate: self.max_rate });
        let mut handles = BTreeMap::new();
        for vertex in graph.vertices.iter().filter(|vertex| vertex.id.0 <= last) {
            for subtask in 0..vertex.parallelism {
                let descriptor = self.descriptor(graph, vertex.id, subtask, &node);
                let services = self.services(node(vertex.id.0, subtask), Arc::clone(&splits) as _);
                handles.insert((vertex.id.0, subtask), spawn(descriptor, services));
            }
        }
        handles
    }

    fn splits(&self, graph: &JobGraph) -> Vec<FileSplit> {
        let mut splits = Vec::new();
        for operator in graph.vertices.iter().flat_map(|vertex| &vertex.operators) {
            match operator {
                OperatorSpec::Source(SourceOptions::File(options)) => {
                    splits = enumerate(options, graph.vertices[0].parallelism).unwrap();
                }
                // Output is continued.
                OperatorSpec::Sink(_) if self.restore.is_some() => {}
                OperatorSpec::Sink(SinkOptions::File(options)) => prepare(options).unwrap(),
                _ => {}
            }
        }
        splits
    }

    /// Every split that is not finished in the checkpoint that is restored.
    fn open_splits(&self, graph: &JobGraph) -> (Mutex<Vec<FileSplit>>, Mutex<BTreeMap<u32, FileSplit>>) {
        let mut left = self.splits(graph);
        let mut resumed = BTreeMap::new();
        if let Some(completed) = &self.restore {
            left.retain(|split| !completed.finished.contains(&split.id));
        }
        for ((_, subtask), part) in self.restore.iter().flat_map(|completed| &completed.parts) {
            let Some(progress) = &part.source else { continue };
            if let Some((id, at)) = progress.reading {
                let split = left.iter().position(|split| split.id == id).map(|place| left.remove(place));
                resumed.insert(*subtask, FileSplit { resume: Some(at), ..split.unwrap() });
            }
        }
        (Mutex::new(left), Mutex::new(resumed))
    }

    pub(super) fn services(&self, node: usize, splits: Arc<dyn SplitProvider>) -> TaskServices {
        let (events, answers) = (Arc::clone(&self.events), Arc::clone(&self.answers));
        TaskServices {
            task_executor: format!("te{node}").parse().unwrap(),
            placement: self.placement,
            clock: self.clock.clone(),
            io: Handle::current(),
            channels: Arc::clone(&self.nodes[node].channels),
            transport: Arc::clone(&self.nodes[node].transport),
            calls: Arc::new(self.calls.clone()),
            splits,
            events: Arc::new(move |event| events.lock().unwrap().push(event)),
            answers: Arc::new(move |answer| answers.lock().unwrap().push(answer)),
            stores: Arc::new(self.stores.clone()),
        }
    }

    fn descriptor(
        &self,
        graph: &Arc<JobGraph>,
        vertex: VertexId,
        subtask: u32,
        node: &impl Fn(u32, u32) -> usize,
    ) -> TaskDescriptor {
        let subtasks = |of: VertexId| 0..graph.vertices[of.0 as usize].parallelism;
        let inputs = graph.edges.iter().filter(|edge| edge.to == vertex).map(|edge| InputGate {
            edge: edge.id,
            producers: subtasks(edge.from).map(|from| self.attempt(edge.from, from)).collect(),
        });
        let outputs = graph.edges.iter().filter(|edge| edge.from == vertex).map(|edge| OutputGate {
            edge: edge.id,
            consumers: subtasks(edge.to)
                .map(|to| {
                    let number = node(edge.to.0, to);
                    ChannelTarget {
                        attempt: self.attempt(edge.to, to),
                        task_executor: format!("te{number}").parse().unwrap(),
                        data_address: self.nodes[number].serving.local_address().clone(),
                    }
                })
                .collect(),
        });
        TaskDescriptor {
            attempt: self.attempt(vertex, subtask),
            graph: Arc::clone(graph),
            vertex,
            origin_job: JOB,
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            restore: self.restore.as_ref().map(|completed| completed.for_subtask(graph, vertex, subtask)),
        }
    }

    fn attempt(&self, vertex: VertexId, subtask: u32) -> AttemptId {
        AttemptId { attempt: self.life, ..attempt(vertex, subtask) }
    }

    /// Waits for so many terminal states, at most an hour of the paused clock.
    pub(super) async fn ended(&self, tasks: usize) -> Vec<TaskEvent> {
        let polled = async {
            loop {
                let ended = self.terminal();
                if ended.len() >= tasks {
                    return ended;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3600), polled).await.expect("the tasks end within an hour")
    }

    pub(super) fn terminal(&self) -> Vec<TaskEvent> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event.state.is_terminal()).cloned().collect()
    }

    /// Runs a whole job on the first task executor, makes its output visible and gives its figures, which add up.
    pub(super) async fn run(&self, yaml: &str) -> v1::Figures {
        self.run_on(yaml, |_, _| 0).await
    }

    pub(super) async fn run_on(&self, yaml: &str, node: impl Fn(u32, u32) -> usize) -> v1::Figures {
        let graph = self.plan(yaml);
        let tasks = self.deploy(&graph, node).len();
        let ended = self.ended(tasks).await;
        for event in &ended {
            assert_eq!((event.state, &event.error), (TaskState::Finished, &None), "{}", event.attempt);
            commit(&event.last.as_ref().unwrap().staged).unwrap();
        }
        let figures = total(&ended);
        let accounted = figures.records_out + figures.filtered + figures.dropped + figures.dead_letters;
        assert_eq!(figures.records_in, accounted, "every record has one fate: {figures:?}");
        figures
    }

    /// Runs a job whose first failure is of interest.
    pub(super) async fn fails(&self, yaml: &str) -> TaskEvent {
        let graph = self.plan(yaml);
        let handles = self.deploy(&graph, |_, _| 0);
        let first = self.ended(1).await.remove(0);
        handles.values().for_each(TaskHandle::cancel);
        self.ended(handles.len()).await;
        assert_eq!(first.state, TaskState::Failed, "{first:?}");
        first
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

pub(super) fn attempt(vertex: VertexId, subtask: u32) -> AttemptId {
    AttemptId { job: JOB, term: Epoch(1), vertex, subtask, attempt: 0 }
}

pub(super) fn total(events: &[TaskEvent]) -> v1::Figures {
    let mut total = v1::Figures::default();
    for figures in events.iter().map(|event| &event.figures) {
        total.records_in += figures.records_in;
        total.records_out += figures.records_out;
        total.filtered += figures.filtered;
        total.dropped += figures.dropped;
        total.dead_letters += figures.dead_letters;
        total.empty += figures.empty;
        total.calls += figures.calls;
        total.retries += figures.retries;
        total.timeouts += figures.timeouts;
    }
    total
}

/// So many lines `{"n":0,"k":0}`, `{"n":1,"k":1}`, with keys that repeat every `keys` lines.
pub(super) fn lines(count: usize, keys: usize) -> String {
    (0..count).map(|n| format!("{{\"n\":{n},\"k\":{}}}\n", n % keys)).collect()
}

/// The numbers in the field `n` of each line.
pub(super) fn numbers(text: &str) -> Vec<usize> {
    let number = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        usize::try_from(value["n"].as_u64().unwrap()).unwrap()
    };
    text.lines().map(number).collect()
}

/// Runs a test's body where local tasks can be spawned.
pub(super) async fn local<T>(body: impl Future<Output = T>) -> T {
    tokio::task::LocalSet::new().run_until(body).await
}
