//! The driver with real processes: a shell that says something, waits on its input, or ends.

use std::path::Path;
use std::sync::Mutex;

use entrypoint::Role;
use testkit::patience::{Look, Patience};
use tokio::sync::mpsc;

use super::*;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Waits for ever without a second process, unlike `sleep`.
const WAIT: &str = "mkfifo $0.fifo; read x <> $0.fifo";

struct Bench {
    driver: ProcessDriver,
    events: Mutex<mpsc::UnboundedReceiver<DriverEvent>>,
    recovered: Vec<ResourceId>,
    state: Arc<StateDir>,
}

impl Bench {
    /// A driver whose workers run `script`, with a name of a file in the folder as `$0`.
    fn new(folder: &Path, script: &str) -> Self {
        let shell = folder.join("shell").to_str().unwrap().to_owned();
        let args = vec!["-c".to_owned(), script.to_owned(), shell];
        let state = Arc::new(StateDir::open(folder, Role::ResourceManager).unwrap());
        Self::over(state, WorkerCommand::new("/bin/sh".into(), args))
    }

    fn over(state: Arc<StateDir>, command: WorkerCommand) -> Self {
        let driver = ProcessDriver::new(command, Arc::clone(&state), runtime::Handle::current());
        let (told, events) = mpsc::unbounded_channel();
        // Nobody listens any more once a test is over.
        let tell: DriverEvents = Arc::new(move |event| drop(told.send(event)));
        let recovered = driver.begin(&"http://127.0.0.1:1".parse().unwrap(), tell);
        Self { driver, events: Mutex::new(events), recovered, state }
    }

    async fn next(&mut self) -> DriverEvent {
        let events = self.events.get_mut().unwrap();
        tokio::time::timeout(LONG, events.recv()).await.expect("nothing within a minute").unwrap()
    }

    fn process(&self, id: &ResourceId) -> Process {
        *self.driver.0.lives.get(id).unwrap().process.get().unwrap()
    }

    fn listed(&self) -> Vec<String> {
        self.state.names("workers").unwrap()
    }
}

/// Polls what another process does; not by the runtime's clock, which may be paused.
fn until(what: &str, is: impl Fn() -> bool) {
    let look = || Ok(Look::of(is().then_some(()), || "not yet".to_owned()));
    Patience::of(LONG).until(what, look).unwrap();
}

fn id(name: &str) -> ResourceId {
    name.parse().unwrap()
}

#[tokio::test]
async fn a_worker_that_exits_at_once_is_told_with_its_status_and_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path(), "echo out; echo 'no such library' >&2; exit 3");
    bench.driver.start(&id("w-1"));
    assert_eq!(bench.next().await, DriverEvent::Started(id("w-1")));
    let DriverEvent::Ended(ended, ending) = bench.next().await else { panic!("it has not ended") };
    assert_eq!((ended, ending.status.as_str()), (id("w-1"), "exit status: 3"));
    assert_eq!(ending.last_words, "out | no such library");
    assert!(Path::new(&ending.log).exists(), "{ending}");
    assert!(bench.listed().is_empty(), "nothing of it is left");
}

#[tokio::test]
async fn a_worker_gets_its_name_and_whom_to_register_at() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path(), "echo \"$@\"");
    bench.driver.start(&id("w-1"));
    bench.next().await;
    let DriverEvent::Ended(_, ending) = bench.next().await else { panic!("it has not ended") };
    let expected = "--set resourcemanager.address=http://127.0.0.1:1 --set taskexecutor.resource-id=w-1";
    assert_eq!(ending.last_words, expected);
}

#[tokio::test]
async fn a_command_that_has_vanished_is_told_with_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let state = Arc::new(StateDir::open(folder.path(), Role::ResourceManager).unwrap());
    let command = WorkerCommand::new(folder.path().join("nothing"), Vec::new());
    let mut bench = Bench::over(state, command);
    bench.driver.start(&id("w-1"));
    let DriverEvent::NotStarted(_, cause) = bench.next().await else { panic!("it has started") };
    assert!(cause.contains("nothing cannot be started") && cause.contains("worker.command"), "{cause}");
    assert!(bench.listed().is_empty());
}

#[tokio::test]
async fn a_stopped_worker_ends_by_sigterm_and_only_once_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("trap 'trap \"exit 9\" TERM; exit 4' TERM; {WAIT}");
    let listens = folder.path().join("shell.fifo");
    let mut bench = Bench::new(folder.path(), &script);
    bench.driver.start(&id("w-1"));
    bench.next().await;
    assert_eq!(bench.listed(), ["w-1"]);
    until("the shell has set its trap", || listens.exists());
    bench.driver.stop(&id("w-1"));
    bench.driver.stop(&id("w-1"));
    let DriverEvent::Ended(_, ending) = bench.next().await else { panic!("it has not ended") };
    assert_eq!(ending.status, "exit status: 4");
    bench.driver.stop(&id("w-1"));
    assert!(bench.driver.0.lives.is_empty());
}

/// The clock is paused: the grace passes at once when nothing else is to do.
#[tokio::test(start_paused = true)]
async fn a_worker_that_stands_still_is_killed_after_the_grace() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path(), WAIT);
    bench.driver.start(&id("w-1"));
    bench.next().await;
    let process = bench.process(&id("w-1"));
    process.signal(Signal::STOP);
    // Of two signals that wait the kernel takes the lower one first, which is the one to end by.
    let stat = format!("/proc/{}/stat", process.pid);
    until("it stands still", || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")));
    bench.driver.stop(&id("w-1"));
    // No patience here, which would pass as fast.
    let ended = bench.events.get_mut().unwrap().recv().await;
    let Some(DriverEvent::Ended(_, ending)) = ended else { panic!("{ended:?}") };
    assert_eq!(ending.status, "signal: 9 (SIGKILL)");
}

#[tokio::test]
async fn a_worker_that_is_unwanted_before_it_was_begun_is_not_started_or_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(folder.path(), WAIT);
    bench.driver.start(&id("w-1"));
    bench.driver.stop(&id("w-1"));
    match bench.next().await {
        DriverEvent::NotStarted(_, cause) => assert!(cause.contains("no longer needed"), "{cause}"),
        DriverEvent::Started(_) => assert!(matches!(bench.next().await, DriverEvent::Ended(..))),
        ended @ DriverEvent::Ended(..) => panic!("{ended:?}"),
    }
    assert!(bench.listed().is_empty());
}

#[tokio::test]
async fn a_successor_finds_the_workers_that_live_watches_them_and_can_stop_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Bench::new(folder.path(), WAIT);
    for name in ["w-1", "w-2", "w-3"] {
        first.driver.start(&id(name));
        first.next().await;
    }
    let [one, two, three] = ["w-1", "w-2", "w-3"].map(|name| first.process(&id(name)));
    // One ended while nobody looked; of another only the name had been noted when the resource manager was killed.
    one.signal(Signal::KILL);
    assert!(matches!(first.next().await, DriverEvent::Ended(ended, _) if ended == id("w-1")));
    let records = &first.driver.0.records;
    records.runs(&id("w-1"), one).unwrap();
    records.starting(&id("w-2")).unwrap();
    let mut second =
        Bench::over(Arc::clone(&first.state), WorkerCommand::new("/bin/false".into(), Vec::new()));
    assert_eq!(second.recovered, [id("w-2"), id("w-3")]);
    assert_eq!((second.process(&id("w-2")), second.process(&id("w-3"))), (two, three));
    three.signal(Signal::KILL);
    assert!(matches!(second.next().await, DriverEvent::Ended(ended, _) if ended == id("w-3")));
    second.driver.stop(&id("w-2"));
    assert!(matches!(second.next().await, DriverEvent::Ended(ended, _) if ended == id("w-2")));
    assert!(!two.is_alive() && second.listed().is_empty());
}
