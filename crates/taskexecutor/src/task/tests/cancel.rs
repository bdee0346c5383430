//! The order to stop, and tasks on threads of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use connectors::call::{Answer, CallRequest};

use super::harness::{Cluster, lines, local, numbers};
use crate::task::{Placement, TaskHandle, TaskState};

const YAML: &str = "name: j
source: {file: {path: in.jsonl}}
steps: [{enrich: {name: e, capacity: 50, timeout: none, into: a, call: {rust: stuck}}}]
sink: {file: {path: out.jsonl}}
";

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_ends_at_once_drops_its_calls_and_leaves_no_file() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        let running = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&running);
        cluster.calls.register("stuck", move |_: CallRequest| {
            let token = Token(Arc::clone(&counted));
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                let _token = token;
                std::future::pending().await
            }
        });
        cluster.write("in.jsonl", &lines(1000, 1));
        let handles = cluster.deploy(&cluster.plan(YAML), |_, _| 0);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(running.load(Ordering::Relaxed), 50);
        assert_eq!(cluster.files().len(), 2, "the input and the dot file: {:?}", cluster.files());
        let start = tokio::time::Instant::now();
        handles.values().for_each(TaskHandle::cancel);
        let ended = cluster.ended(1).await;
        assert!(start.elapsed() < Duration::from_millis(100));
        assert_eq!(ended[0].state, TaskState::Canceled);
        assert_eq!(ended[0].figures.calls, 50);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(running.load(Ordering::Relaxed), 0, "no call outlives its task");
        assert_eq!(cluster.files(), ["in.jsonl"]);
    })
    .await;
}

struct Token(Arc<AtomicUsize>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn states_are_told_once_and_in_order() {
    local(async {
        let mut cluster = Cluster::new(1).await;
        cluster.calls.register("stuck", |_: CallRequest| async { Ok(Answer::Empty) });
        cluster.write("in.jsonl", &lines(10, 1));
        cluster.run(YAML).await;
        let states: Vec<_> = cluster.events.lock().unwrap().iter().map(|event| event.state).collect();
        assert_eq!(states, [TaskState::Initializing, TaskState::Running, TaskState::Finished]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_registered_fails_the_task_for_good() {
    local(async {
        let cluster = Cluster::new(1).await;
        cluster.write("in.jsonl", &lines(10, 1));
        let failed = cluster.fails(YAML).await;
        assert!(failed.unrecoverable && failed.error.unwrap().contains("`stuck`"));
    })
    .await;
}

#[tokio::test]
async fn a_task_on_its_own_thread_does_the_same() {
    let mut cluster = Cluster::new(1).await;
    cluster.placement = Placement::Threads;
    cluster.calls.register("stuck", |request: CallRequest| async move {
        tokio::task::yield_now().await;
        Ok(Answer::Value(request.attempt.to_string().into()))
    });
    cluster.write("in.jsonl", &lines(2000, 1));
    let figures = cluster.run(YAML).await;
    assert_eq!(figures.records_out, 2000);
    assert_eq!(numbers(&cluster.read("out.jsonl")), (0..2000).collect::<Vec<_>>());
}
