//! Every key of the three servers. One file may serve all of them, so each knows the keys of the others.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use runtime_core::ResourceId;

use super::key::{AnyKey, Key};
use super::value::{Advertise, Auto, ClusterId, Detector, Folder, LogFormat, Size, Url, Words, WorkerDriver};
use crate::role::Role::{self, JobMaster, ResourceManager, TaskExecutor};

const ALL: &[Role] = Role::ALL;

/// Declares the keys as statics and the table of them.
macro_rules! keys {
    ($($(#[$meta:meta])* $ident:ident: $type:ty = $name:literal, $roles:expr, $default:expr, $check:expr, $doc:literal;)+) => {
        $(
            #[doc = concat!("`", $name, "`: ", $doc)]
            $(#[$meta])*
            pub static $ident: Key<$type> =
                Key { name: $name, doc: $doc, roles: $roles, default: $default, check: $check };
        )+

        /// The table of all keys, by name.
        pub static KEYS: &[&dyn AnyKey] = &[$(&$ident),+];
    };
}

keys! {
    CLUSTER_ID: ClusterId = "cluster.id", &[ResourceManager, JobMaster], |_| ClusterId::default(), any,
        "the name of the cluster; a state folder remembers it and is refused by servers of another";
    DATA_ADVERTISE: Auto<Advertise> = "data.advertise", &[TaskExecutor], |_| Auto(None), any,
        "what other task executors connect to for records; auto is the bound address";
    DATA_BATCH_SIZE: Size = "data.batch-size", &[TaskExecutor], |_| Size(64 << 10), batch_size,
        "at most this many bytes of records travel together between task executors";
    DATA_BIND: SocketAddr = "data.bind", &[TaskExecutor], |_| loopback(0), any,
        "where records from other task executors come in";
    DATA_CREDITS: u32 = "data.credits", &[TaskExecutor], |_| 4, at_least_one,
        "batches that a receiver lets one sender have under way";
    HEARTBEAT_DETECTOR: Detector = "heartbeat.detector", ALL, |_| Detector::Fixed, any,
        "how silence is judged";
    HEARTBEAT_HOLD: bool = "heartbeat.hold", ALL, |_| true, any,
        "whether the resource manager waits once when most task executors fall silent together";
    HEARTBEAT_INTERVAL: Duration = "heartbeat.interval", ALL, |_| Duration::from_secs(10), positive,
        "time between two heartbeat requests to one peer";
    HEARTBEAT_RPC_FAILURE_THRESHOLD: i32 = "heartbeat.rpc-failure-threshold", ALL, |_| 2, threshold,
        "refused heartbeats in a row that make a peer unreachable; -1: never";
    HEARTBEAT_SELF_FENCE: bool = "heartbeat.self-fence", ALL, |_| true, any,
        "whether tasks stop their outputs before their silent job master may have given them up";
    HEARTBEAT_STUCK_TIMEOUT: Auto<Duration> = "heartbeat.stuck-timeout", ALL, |_| Auto(None), auto_positive,
        "how long the main loop of a peer that answers may stand; auto is heartbeat.timeout";
    HEARTBEAT_TIMEOUT: Duration = "heartbeat.timeout", ALL, |_| Duration::from_secs(50), positive,
        "silence after which a peer is dead";
    LOG_FORMAT: LogFormat = "log.format", ALL, |_| LogFormat::Text, any,
        "the shape of log lines on stderr";
    METRICS_BIND: Option<SocketAddr> = "metrics.bind", ALL, |_| None, any,
        "where /metrics and /healthz are served";
    RESOURCEMANAGER_ADDRESS: Url = "resourcemanager.address", &[JobMaster, TaskExecutor], resourcemanager, any,
        "the resource manager to register at";
    RESOURCEMANAGER_JOB_TIMEOUT: Duration = "resourcemanager.job.timeout", &[ResourceManager], |_| minutes(5), positive,
        "how long a job without a job master keeps its requirements";
    RESOURCEMANAGER_START_UP_TIME: Duration = "resourcemanager.standalone.start-up-time", &[ResourceManager],
        |_| minutes(5), any, "time after the start in which too few slots are no failure yet";
    REST_BIND: SocketAddr = "rest.bind", &[JobMaster], |_| loopback(8081), any,
        "where people and tools reach the job master";
    RPC_ADVERTISE: Auto<Advertise> = "rpc.advertise", ALL, |_| Auto(None), any,
        "what peers connect to; auto is the bound address";
    RPC_BIND: SocketAddr = "rpc.bind", ALL, rpc_bind, any,
        "where peers reach this process";
    SAVEPOINTS_DIR: Option<Folder> = "savepoints.dir", &[JobMaster], |_| None, any,
        "where savepoints go that are asked for without a folder";
    SLOT_IDLE_TIMEOUT: Duration = "slot.idle.timeout", &[JobMaster], |_| Duration::from_secs(50), positive,
        "after which a job gives back a slot it does not need";
    SLOT_REQUEST_TIMEOUT: Duration = "slot.request.timeout", &[JobMaster], |_| minutes(5), positive,
        "how long a job waits for its slots before it fails";
    SLOTS_MAX: Option<u32> = "slots.max", &[ResourceManager], |_| None, some_at_least_one,
        "slots that the task executors may have in all; one that would bring more is not registered";
    STATE_DIR: PathBuf = "state.dir", &[ResourceManager, JobMaster], |_| PathBuf::from("./tidegate-state"), any,
        "the folder of what must survive a restart";
    TASK_CANCELLATION_INTERVAL: Duration = "task.cancellation.interval", &[TaskExecutor],
        |_| Duration::from_secs(30), positive, "how often a task that was told to stop and has not is told again, and named in the log";
    TASK_CANCELLATION_TIMEOUT: Option<Duration> = "task.cancellation.timeout", &[TaskExecutor],
        |_| Some(minutes(3)), some_positive, "after which a task executor ends whose task was told to stop and has not";
    TASKEXECUTOR_REGISTRATION_TIMEOUT: Duration = "taskexecutor.registration.timeout", &[TaskExecutor],
        |_| minutes(5), positive, "how long a task executor looks for a resource manager before it gives up";
    TASKEXECUTOR_RESOURCE_ID: Auto<ResourceId> = "taskexecutor.resource-id", &[TaskExecutor], |_| Auto(None), any,
        "the name in the cluster; auto is made from host, port and a random part";
    TASKEXECUTOR_SLOT_TIMEOUT: Duration = "taskexecutor.slot.timeout", &[TaskExecutor],
        |_| Duration::from_secs(10), positive, "how long a promised slot waits for its job";
    TASKEXECUTOR_SLOTS: u32 = "taskexecutor.slots", &[ResourceManager, TaskExecutor], cores, slots,
        "slots offered, by default the number of cores; a resource manager starts workers with as many";
    WORKER_ARGS: Words = "worker.args", &[ResourceManager], |_| Words::default(), any,
        "arguments for each worker, separated by blanks, before those that the resource manager adds";
    WORKER_COMMAND: Auto<PathBuf> = "worker.command", &[ResourceManager], |_| Auto(None), any,
        "the program of a worker; auto is the taskexecutor beside the resource manager's own program";
    WORKER_DRIVER: WorkerDriver = "worker.driver", &[ResourceManager], |_| WorkerDriver::Standalone, any,
        "who starts task executors";
    WORKER_IDLE_TIMEOUT: Duration = "worker.idle-timeout", &[ResourceManager], |_| Duration::from_secs(30), positive,
        "after which a worker without a job is stopped";
    WORKER_MAX: u32 = "worker.max", &[ResourceManager], |_| 64, at_least_one,
        "workers that may run at a time";
    WORKER_MAX_START_FAILURE_RATE: u32 = "worker.max-start-failure-rate", &[ResourceManager], |_| 10, at_least_one,
        "workers that may fail to start in a minute before there are pauses";
    WORKER_RECOVERY_TIMEOUT: Duration = "worker.recovery-timeout", &[ResourceManager],
        |_| Duration::from_secs(30), any, "how long a restarted resource manager waits for its workers before it starts others";
    WORKER_REDUNDANT: u32 = "worker.redundant", &[ResourceManager], |_| 0, any,
        "workers kept in reserve while jobs run";
    WORKER_REGISTRATION_TIMEOUT: Duration = "worker.registration-timeout", &[ResourceManager],
        |_| minutes(5), positive, "how long a worker may take from its start to its registration before it is replaced";
    WORKER_START_RETRY_INTERVAL: Duration = "worker.start-retry-interval", &[ResourceManager],
        |_| Duration::from_secs(3), positive, "the pause between starts while too many have failed";
}

/// The key of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn AnyKey> {
    KEYS.iter().copied().find(|key| key.name() == name)
}

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn rpc_bind(role: Role) -> SocketAddr {
    loopback(match role {
        ResourceManager => 6120,
        JobMaster => 6123,
        TaskExecutor => 0,
    })
}

fn resourcemanager(_: Role) -> Url {
    Url::of(loopback(6120))
}

fn cores(_: Role) -> u32 {
    std::thread::available_parallelism()
        .map_or(1, |n| u32::try_from(n.get()).unwrap_or(MOST_SLOTS))
        .min(MOST_SLOTS)
}

/// More slots than any machine has use for: a typing mistake, and a table of them would not fit a message.
const MOST_SLOTS: u32 = 65_536;

const fn any<T>(_: &T) -> Result<(), &'static str> {
    Ok(())
}

fn positive(duration: &Duration) -> Result<(), &'static str> {
    if duration.is_zero() { Err("a duration above 0, such as 10s") } else { Ok(()) }
}

fn auto_positive(duration: &Auto<Duration>) -> Result<(), &'static str> {
    match &duration.0 {
        Some(given) => positive(given),
        None => Ok(()),
    }
}

fn some_positive(duration: &Option<Duration>) -> Result<(), &'static str> {
    duration.as_ref().map_or(Ok(()), positive)
}

fn some_at_least_one(n: &Option<u32>) -> Result<(), &'static str> {
    n.as_ref().map_or(Ok(()), at_least_one)
}

fn at_least_one(n: &u32) -> Result<(), &'static str> {
    if *n == 0 { Err("at least 1") } else { Ok(()) }
}

fn slots(n: &u32) -> Result<(), &'static str> {
    if (1..=MOST_SLOTS).contains(n) { Ok(()) } else { Err("1 to 65536 slots") }
}

fn threshold(n: &i32) -> Result<(), &'static str> {
    if *n > 0 || *n == -1 { Ok(()) } else { Err("a number above 0, or -1 for never") }
}

fn batch_size(size: &Size) -> Result<(), &'static str> {
    // Below, the frame costs more than the records; above, a batch would not fit a message.
    if (1 << 10..=4 << 20).contains(&size.0) { Ok(()) } else { Err("a size from 1KiB to 4MiB") }
}
