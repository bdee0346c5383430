//! Job masters that move, end and are lost.

use wire::convert::WireId;
use wire::v1;

use super::harness::{Cluster, JM_EPOCH, JOB, allocation, attempt, secs, settle};

fn leader(address: &str, epoch: u64) -> v1::ResourceManagerToTaskExecutor {
    use v1::resource_manager_to_task_executor::Message;
    let leader = v1::JobLeader { job_id: JOB.to_wire(), rpc_address: address.into(), epoch };
    v1::ResourceManagerToTaskExecutor { number: 1, message: Some(Message::JobLeader(leader)) }
}

#[tokio::test(start_paused = true)]
async fn c092_a_dead_job_masters_tasks_stop_and_its_slots_wait_for_the_next() {
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    settle().await;
    cluster.network.crash("jm");
    secs(1).await;
    assert_eq!(cluster.slot_states().await, ["ALLOCATED", "FREE"]);
    assert!(cluster.available().is_empty());
    secs(10).await;
    assert_eq!(cluster.available(), [allocation(1)]);
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
}

/// What went wrong so far, as it was told to the job master.
fn errors(cluster: &Cluster) -> Vec<String> {
    cluster.updates().into_iter().map(|(_, update)| update.error).filter(|error| !error.is_empty()).collect()
}

const SHORT: [&str; 2] = ["heartbeat.interval=500ms", "heartbeat.timeout=4s"];

/// The job master does not ask any more, and nothing is refused either.
#[tokio::test(start_paused = true)]
async fn h077_tasks_stop_before_their_silent_job_master_may_have_given_them_up() {
    let cluster = Cluster::with_active_slot_and(&SHORT).await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    secs(1).await;
    cluster.job_master_beats(&[1]).await.unwrap();
    // Its timeout of 4 s runs from here, and a lease lasts 3.2 s.
    secs(3).await;
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
    assert_eq!(errors(&cluster), [""; 0]);
    // What a task is stopped for first is its error; it is told on the next link.
    secs(2).await;
    let errors = errors(&cluster);
    assert!(matches!(&errors[..], [error] if error.contains("heartbeat.self-fence")), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_master_that_hears_the_answers_keeps_its_tasks() {
    let cluster = Cluster::with_active_slot_and(&SHORT).await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    for _ in 0..4 {
        secs(1).await;
        cluster.job_master_beats(&[1]).await.unwrap();
    }
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
    assert_eq!(errors(&cluster), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_self_fence_tasks_run_until_the_timeout() {
    let settings = ["heartbeat.interval=500ms", "heartbeat.timeout=4s", "heartbeat.self-fence=false"];
    let cluster = Cluster::with_active_slot_and(&settings).await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(3_800)).await;
    assert_eq!(errors(&cluster), [""; 0]);
    // What a task is stopped for first is its error; it is told on the next link.
    secs(2).await;
    let errors = errors(&cluster);
    assert!(matches!(&errors[..], [error] if error.contains("timed out")), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_its_live_job_master_costs_no_task() {
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    settle().await;
    cluster.jm.script.end_streams();
    settle().await;
    assert_eq!(cluster.jm.script.count("register"), 2);
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
    cluster.job_master_beats(&[1]).await.unwrap();
    assert_eq!(*cluster.jm.deployed.lock().unwrap(), [attempt(0)]);
    // What was not acknowledged is said again under its number.
    let again = [(1, 0, "INITIALIZING"), (2, 0, "RUNNING"), (1, 0, "INITIALIZING"), (2, 0, "RUNNING")];
    assert_eq!(cluster.states(), again);
}

#[tokio::test(start_paused = true)]
async fn a_job_master_that_says_disconnect_is_told_that_the_tasks_have_failed() {
    use v1::job_master_to_task_executor::Message;
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    settle().await;
    let bye = Message::Disconnect(v1::Disconnect { cause: "you were silent".into() });
    cluster.jm.script.say(v1::JobMasterToTaskExecutor { number: 1, message: Some(bye) });
    secs(3).await;
    assert_eq!(cluster.jm.script.count("register"), 2);
    let (_, last) = cluster.updates().pop().unwrap();
    assert_eq!(last.state(), v1::TaskState::Failed);
    assert!(last.error.contains("you were silent"), "{}", last.error);
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"], "offered again and taken again");
}

/// As of one that was started again, and asked before it was offered what the one before it held.
#[tokio::test(start_paused = true)]
async fn a_slot_that_is_offered_again_survives_a_heartbeat_that_was_sent_before() {
    use v1::job_master_to_task_executor::Message;
    let cluster = Cluster::with_active_slot().await;
    secs(5).await;
    let bye = Message::Disconnect(v1::Disconnect { cause: "you were silent".into() });
    cluster.jm.script.say(v1::JobMasterToTaskExecutor { number: 1, message: Some(bye) });
    for _ in 0..100 {
        settle().await;
        if cluster.jm.script.count("offer") == 2 {
            break;
        }
    }
    settle().await;
    cluster.job_master_beats(&[]).await.unwrap();
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"]);
    secs(2).await;
    cluster.job_master_beats(&[]).await.unwrap();
    assert_eq!(cluster.slot_states().await, ["FREE", "FREE"]);
}

#[tokio::test(start_paused = true)]
async fn only_a_newer_term_moves_a_link() {
    let cluster = Cluster::with_active_slot().await;
    cluster.rm.script.say(leader("", JM_EPOCH));
    cluster.rm.script.say(leader("http://other:1", JM_EPOCH - 1));
    secs(2).await;
    assert_eq!(cluster.jm.script.count("register"), 1);
    cluster.rm.script.say(leader("http://jm:6123", JM_EPOCH + 1));
    secs(2).await;
    assert_eq!(cluster.jm.script.count(&format!("register epoch {}", JM_EPOCH + 1)), 1);
    assert!(cluster.said_goodbye_to_job_master());
    assert_eq!(cluster.slot_states().await, ["ACTIVE", "FREE"], "offered to the new one");
}

#[tokio::test(start_paused = true)]
async fn a_stop_says_goodbye_to_everybody_and_ends_the_tasks() {
    use v1::task_executor_to_resource_manager::Message;
    let cluster = Cluster::with_active_slot().await;
    cluster.gateway().submit_task(cluster.task(0)).await.unwrap();
    settle().await;
    let gateway = cluster.gateway();
    let begun = tokio::time::Instant::now();
    let Cluster { rm, jm, te, .. } = cluster;
    te.stop().await;
    assert!(begun.elapsed().as_secs() < 3);
    settle().await;
    assert!(rm.script.heard().iter().any(|m| matches!(m.message, Some(Message::Disconnect(_)))));
    use v1::task_executor_to_job_master::Message as ToJobMaster;
    assert!(jm.script.heard().iter().any(|m| matches!(m.message, Some(ToJobMaster::Disconnect(_)))));
    assert!(gateway.request_slot(Cluster::slot_request(2)).await.is_err());
}
