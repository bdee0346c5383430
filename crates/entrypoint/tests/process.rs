//! What only a process shows: exit status, the one line on stdout, the one line on stderr, signals, locks.
//!
//! The test program is its own server: with [`BEHAVIOUR`] in the environment it runs as one. As in the usual harness,
//! a word on the command line selects tests whose names hold it, and `--ignored` or `--include-ignored` runs slow ones.

// Everything here is a test; a custom harness has no functions that the lints know as such.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};

use entrypoint::{ReadyLine, Role, Server, keys, run_server};

const BEHAVIOUR: &str = "ENTRYPOINT_TEST_BEHAVIOUR";

fn main() -> ExitCode {
    if let Ok(behaviour) = std::env::var(BEHAVIOUR) {
        return run_server(Role::JobMaster, |server| serve(server, behaviour));
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (only_slow, slow_too) =
        (args.iter().any(|a| a == "--ignored"), args.iter().any(|a| a == "--include-ignored"));
    let filter = args.iter().find(|arg| !arg.starts_with('-'));
    for (name, slow, test) in TESTS {
        let wanted = if *slow { only_slow || slow_too } else { !only_slow };
        if wanted && filter.is_none_or(|filter| name.contains(filter.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

type Test = (&'static str, bool, fn());

const TESTS: &[Test] = &[
    ("a_server_says_one_line_and_ends_with_0_on_sigterm", false, one_line_and_0),
    ("ctrl_c_is_a_graceful_stop_too", false, ctrl_c),
    ("a_second_signal_ends_at_once_although_the_program_is_stuck", false, second_signal),
    ("a_stop_that_hangs_is_cut_off_within_five_seconds", true, hanging_stop),
    ("a_wrong_configuration_is_status_2_and_one_line", false, wrong_configuration),
    ("print_config_is_status_0_and_starts_nothing", false, print_config),
    ("a_failure_at_run_time_is_status_1_and_one_line", false, failure),
    ("a_taken_metrics_port_is_named_with_its_key", false, taken_port),
    ("usage_is_as_usual", false, usage),
    ("a_killed_process_leaves_its_folder_to_the_next", false, killed_owner),
];

async fn serve(mut server: Server, behaviour: String) -> anyhow::Result<()> {
    let id = "jm-1".parse()?;
    match behaviour.as_str() {
        "fail" => return Err(anyhow::anyhow!("outer\nline").context("while starting")),
        "lock" => {
            let state = server.state_dir()?;
            server.ready(ReadyLine::new(Role::JobMaster, &id));
            server.shutdown.wait().await;
            drop(state);
        }
        "stuck" => {
            server.ready(ReadyLine::new(Role::JobMaster, &id));
            // Blocks every thread that the program's own runtime has.
            for _ in 0..2 {
                tokio::spawn(async { std::thread::park() });
            }
            std::thread::park();
        }
        _ => {
            let listener = server.listen(&keys::RPC_BIND)?;
            server.ready(ReadyLine::new(Role::JobMaster, &id).rpc(listener.local_addr()?));
            server.shutdown.wait().await;
        }
    }
    Ok(())
}

fn command(behaviour: &str, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args).env(BEHAVIOUR, behaviour).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Status, stdout and the lines of stderr of a run that ends by itself.
fn run(behaviour: &str, args: &[&str]) -> (Option<i32>, String, Vec<String>) {
    let output = command(behaviour, args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let lines = text(output.stderr).lines().map(str::to_owned).collect();
    (output.status.code(), text(output.stdout), lines)
}

struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    ready: serde_json::Value,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(behaviour: &str, args: &[&str]) -> Running {
    let mut child = command(behaviour, args).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    Running { child, stdout, ready: serde_json::from_str(&line).unwrap() }
}

impl Running {
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        // The shell's own `kill`: a machine need not have the program.
        let sent =
            Command::new("sh").args(["-c", "kill -s \"$1\" \"$2\"", "kill", name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

fn one_line_and_0() {
    let mut server = start("serve", &["--set", "rpc.bind=127.0.0.1:0", "--set", "metrics.bind=127.0.0.1:0"]);
    assert_eq!(server.ready["role"], "jobmaster");
    assert!(server.ready["rpc"].as_str().unwrap().starts_with("127.0.0.1:"));
    entrypoint::telemetry::check(server.ready["metrics"].as_str().unwrap()).unwrap();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    let mut rest = String::new();
    server.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "stdout carries the ready line alone");
}

fn ctrl_c() {
    let mut server = start("serve", &["--set", "rpc.bind=127.0.0.1:0"]);
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
}

fn second_signal() {
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let mut server = start("stuck", &[]);
        let mut stderr = BufReader::new(server.child.stderr.take().unwrap()).lines();
        server.signal("TERM");
        // The first has been taken when it is logged: two pending ones would count as one.
        assert!(stderr.any(|line| line.unwrap().contains("stopping on SIGTERM")));
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(status));
    }
}

fn hanging_stop() {
    let mut server = start("stuck", &[]);
    let clock = runtime_core::time::TokioClock::start();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    let took = runtime_core::Clock::now(&clock).as_nanos() / 1_000_000;
    assert!((4_000..5_000).contains(&took), "{took} ms");
}

fn wrong_configuration() {
    let (status, stdout, stderr) = run("serve", &["--set", "heartbeat.intervall=5s"]);
    assert_eq!((status, stdout.as_str(), stderr.len()), (Some(2), "", 1), "{stderr:?}");
    assert!(stderr[0].contains("heartbeat.intervall") && stderr[0].contains("did you mean"), "{stderr:?}");
}

fn print_config() {
    let (status, stdout, stderr) = run("fail", &["--print-config", "--set", "heartbeat.interval=5s"]);
    assert_eq!((status, stderr.len()), (Some(0), 0), "{stderr:?}");
    let line = stdout.lines().find(|line| line.starts_with("heartbeat.interval: 5s ")).unwrap();
    assert!(line.ends_with("# flag --set"), "{line}");
}

fn failure() {
    let (status, stdout, stderr) = run("fail", &[]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert_eq!(stderr, ["error: while starting: outer; line"]);
}

fn taken_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, stdout, stderr) = run("serve", &["--set", &format!("metrics.bind={address}")]);
    assert_eq!((status, stdout.as_str(), stderr.len()), (Some(1), "", 1), "{stderr:?}");
    assert!(stderr[0].contains("metrics.bind") && stderr[0].contains(&address), "{stderr:?}");
}

fn usage() {
    assert_eq!(run("serve", &["--help"]).0, Some(0));
    let (status, stdout, _) = run("serve", &["--version"]);
    assert_eq!((status, stdout), (Some(0), format!("jobmaster {}\n", env!("CARGO_PKG_VERSION"))));
    assert_eq!(run("serve", &["--no-such-flag"]).0, Some(2));
}

fn killed_owner() {
    let dir = tempfile::tempdir().unwrap();
    let set = format!("state.dir={}", Path::new(dir.path()).display());
    let args = ["--set", set.as_str()];
    let mut first = start("lock", &args);
    let (status, _, stderr) = run("lock", &args);
    assert_eq!(status, Some(1));
    assert!(
        stderr[0].contains("held by another process") && stderr[0].contains(&first.child.id().to_string())
    );
    first.child.kill().unwrap();
    first.wait();
    let mut next = start("lock", &args);
    next.signal("TERM");
    assert_eq!(next.wait().code(), Some(0));
}
