//! A cluster with a folder for jobs and their output, and the flights job in its variants.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use testkit::flights;
use testkit::join::{self, Joined};
use testkit::patience::{Look, Patience};
use testkit::processes::{
    CommandLine, LookupOptions, LookupService, ProcessCluster, ProcessClusterBuilder, RunningCommand,
};

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Records of a short run: two seconds at [`RATE`].
pub(crate) const SHORT: usize = 6_000;
/// Records per second of a run that something happens to.
pub(crate) const RATE: u64 = 3_000;

/// The whole sample with its planes.
pub(crate) fn expected() -> &'static Joined {
    static EXPECTED: OnceLock<Joined> = OnceLock::new();
    EXPECTED.get_or_init(|| join::flights_with_planes(&flights::sample(), &flights::planes()).unwrap())
}

/// A cluster and a folder.
pub(crate) struct World {
    // First: processes end before their folder does.
    pub(crate) cluster: ProcessCluster,
    folder: tempfile::TempDir,
}

impl World {
    /// A killed process is noticed by its streams; heartbeats are there for what is left, and long enough for a machine
    /// that is busy with other tests.
    pub(crate) fn builder() -> ProcessClusterBuilder {
        ProcessCluster::builder().heartbeat(Duration::from_secs(1), Duration::from_secs(10))
    }

    pub(crate) fn new(builder: ProcessClusterBuilder) -> Self {
        Self { cluster: builder.start().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn started() -> Self {
        Self::new(Self::builder())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The first records of the sample as a file.
    pub(crate) fn short_input(&self) -> PathBuf {
        let lines = flights::lines(&flights::sample()).unwrap();
        self.write("short.jsonl", lines[..SHORT].join(&b'\n'))
    }

    pub(crate) fn service(&self) -> LookupService {
        let options = LookupOptions { delay: Duration::from_millis(5), error_rate: 0.01, seed: 7 };
        let (binaries, logs) = (self.cluster.binaries(), self.cluster.logs());
        LookupService::start(binaries, &flights::planes(), "tailnum", options, &logs).unwrap()
    }

    pub(crate) fn command_line(&self) -> CommandLine {
        self.cluster.command_line().unwrap()
    }

    /// Runs a job to its end and returns the final JSON.
    pub(crate) fn run(&self, job: &FlightsJob) -> Value {
        let output = self.start(job).wait(LONG).unwrap();
        output.expect_status(0).unwrap().json().unwrap()
    }

    /// Starts a job and waits for it in the background.
    pub(crate) fn start(&self, job: &FlightsJob) -> RunningCommand {
        let path = self.write(&format!("{}.yaml", job.name), job.text());
        self.command_line().start(&["run", path.to_str().unwrap(), "--json"]).unwrap()
    }

    /// Waits until the only job has read some records, and returns its id and detail.
    pub(crate) fn await_middle(&self) -> (String, Value) {
        let id = self.await_only_job();
        let detail = self.await_job(&id, |detail| {
            detail["state"] == "RUNNING" && detail["result"]["records_in"].as_u64().is_some_and(|n| n > 0)
        });
        let read = detail["result"]["records_in"].as_u64().unwrap();
        assert!(read < SHORT as u64, "too late for the middle: {read} records are read");
        (id, detail)
    }

    /// Waits until the only job has completed so many checkpoints, and returns its id.
    pub(crate) fn await_checkpoints(&self, number: u64) -> String {
        let id = self.await_only_job();
        self.await_job(&id, |detail| detail["result"]["checkpoints"].as_u64().is_some_and(|n| n >= number));
        id
    }

    fn await_only_job(&self) -> String {
        let jobs = self.cluster.await_answer("/jobs/overview", LONG, |answer| {
            answer["jobs"].as_array().is_some_and(|jobs| jobs.len() == 1)
        });
        jobs.unwrap()["jobs"][0]["jid"].as_str().unwrap().to_owned()
    }

    pub(crate) fn await_job(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.cluster.await_answer(&format!("/jobs/{id}"), LONG, wanted).unwrap()
    }

    /// The lines of a folder of parts; fails if something unfinished is in it.
    pub(crate) fn parts(&self, name: &str) -> Vec<Vec<u8>> {
        let parts = join::parts(&self.path(name)).unwrap();
        parts.iter().flat_map(|part| flights::lines(part).unwrap()).collect()
    }

    /// Waits until nothing of an output is there, not even hidden.
    pub(crate) fn await_nothing_at(&self, name: &str) {
        let folder = self.path(name);
        let look = || {
            let names: Vec<_> = match fs::read_dir(&folder) {
                Ok(entries) => entries.map(|entry| entry.unwrap().file_name()).collect(),
                Err(_) => Vec::new(),
            };
            Ok(if names.is_empty() { Look::Found(()) } else { Look::NotYet(format!("{names:?}")) })
        };
        Patience::of(LONG).until("an empty folder", look).unwrap();
    }
}

/// Subtasks of all vertices of a job's detail.
pub(crate) fn subtasks(detail: &Value) -> Vec<&Value> {
    let vertices = detail["vertices"].as_array().map(Vec::as_slice).unwrap_or_default();
    vertices.iter().flat_map(|vertex| vertex["subtasks"].as_array().unwrap()).collect()
}

pub(crate) fn tailnum(line: &[u8]) -> Option<String> {
    let record: Value = serde_json::from_slice(line).unwrap();
    record["tailnum"].as_str().map(str::to_owned)
}

/// Flights with planes.
pub(crate) struct FlightsJob {
    pub(crate) name: &'static str,
    pub(crate) input: PathBuf,
    pub(crate) order: &'static str,
    pub(crate) parallelism: u32,
    pub(crate) restart: &'static str,
    pub(crate) max_rate: Option<u64>,
    /// A table unless the address of a service is given.
    pub(crate) service: Option<String>,
    /// Where checkpoints go and how often; none unless given.
    pub(crate) checkpoints: Option<(&'static str, PathBuf)>,
    pub(crate) sink: String,
}

impl FlightsJob {
    /// The whole sample, ordered, from a table.
    pub(crate) fn new(name: &'static str, sink: &Path) -> Self {
        Self {
            name,
            input: flights::sample(),
            order: "ordered",
            parallelism: 1,
            restart: "none",
            max_rate: None,
            service: None,
            checkpoints: None,
            sink: sink.to_str().unwrap().to_owned(),
        }
    }

    /// A run with a middle: keyed, two subtasks on two task executors, into the folder `out/`.
    pub(crate) fn slow(world: &World) -> Self {
        let sink = format!("{}/", world.path("out").display());
        Self {
            input: world.short_input(),
            order: "keyed",
            parallelism: 2,
            max_rate: Some(RATE),
            ..Self::new("slow", Path::new(&sink))
        }
    }

    /// The same with a checkpoint every 300 ms, into the folder `checkpoints`, and everything into one file.
    pub(crate) fn checkpointed(world: &World) -> Self {
        Self {
            sink: world.path("out.jsonl").to_str().unwrap().to_owned(),
            restart: "{strategy: fixed-delay, attempts: 20, delay: 0}",
            max_rate: Some(RATE / 3),
            checkpoints: Some(("300ms", world.path("checkpoints"))),
            ..Self::slow(world)
        }
    }

    pub(crate) fn text(&self) -> String {
        let text = |path: &Path| Value::from(path.to_str().unwrap()).to_string();
        let rate = self.max_rate.map(|rate| format!(", max_rate: {rate}")).unwrap_or_default();
        let call = match &self.service {
            Some(address) => format!("http: {{url: \"http://{address}/{{tailnum}}\"}}"),
            None => format!("table: {{file: {}, key: tailnum, by: tailnum}}", text(&flights::planes())),
        };
        let checkpoints = self
            .checkpoints
            .as_ref()
            .map(|(interval, dir)| format!("checkpoints: {{interval: {interval}, dir: {}}}\n", text(dir)));
        format!(
            "name: {name}\nparallelism: {parallelism}\nrestart: {restart}\n{checkpoints}\
             source: {{file: {{path: {input}{rate}}}}}\n\
             steps:\n  - enrich:\n      name: plane\n      order: {order}\n      key: tailnum\n      capacity: 500\n      \
             timeout: 5m\n      retry: {{strategy: fixed-delay, max_retries: 5, delay: 10ms}}\n      into: plane\n      \
             call: {{{call}}}\nsink: {{file: {{path: {sink}}}}}\n",
            name = self.name,
            parallelism = self.parallelism,
            restart = self.restart,
            checkpoints = checkpoints.unwrap_or_default(),
            input = text(&self.input),
            order = self.order,
            sink = Value::from(self.sink.as_str()),
        )
    }
}
