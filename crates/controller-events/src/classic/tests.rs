//! The tables, and the original's own tests in its own words.

use super::*;
use crate::event::{Event, EventState};
use crate::reply::{Abandoned, Reply};
use crate::{LoopOptions, MockClock, NotRun, StartError};
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

const TIMERS: [&str; 15] = [
    "ControllerChangeRateAndTimeMs",
    "LeaderElectionRateAndTimeMs",
    "TopicChangeRateAndTimeMs",
    "TopicDeletionRateAndTimeMs",
    "PartitionReassignmentRateAndTimeMs",
    "AutoLeaderBalanceRateAndTimeMs",
    "ManualLeaderBalanceRateAndTimeMs",
    "ControlledShutdownRateAndTimeMs",
    "IsrChangeRateAndTimeMs",
    "LeaderAndIsrResponseReceivedRateAndTimeMs",
    "LogDirChangeRateAndTimeMs",
    "ControllerShutdownRateAndTimeMs",
    "UncleanLeaderElectionEnableRateAndTimeMs",
    "TopicUncleanLeaderElectionEnableRateAndTimeMs",
    "ListPartitionReassignmentRateAndTimeMs",
];

/// What an event does when it is processed.
type Does = Box<dyn FnMut(&ControllerEvent) + Send>;

struct Acts(Does);

impl ControllerEventProcessor for Acts {
    type Event = ControllerEvent;

    fn process(&mut self, event: ControllerEvent) {
        (self.0)(&event);
    }
}

fn manager(does: impl FnMut(&ControllerEvent) + Send + 'static) -> ControllerEventManager<Acts> {
    ControllerEventManager::with_options(1, Acts(Box::new(does)), LoopOptions::mocked(&MockClock::new()))
}

fn run(manager: &ControllerEventManager<Acts>, event: ControllerEvent) {
    manager.put(event).unwrap().ticket().wait_finished().unwrap();
}

fn counts(manager: &ControllerEventManager<Acts>) -> BTreeMap<String, u64> {
    let count = |metric: KafkaMetric| match metric.value {
        MetricValue::Histogram { count, .. } if count > 0 => {
            Some((metric.name.rsplit("name=").next().unwrap().to_owned(), count))
        }
        _ => None,
    };
    manager.metrics().into_iter().filter_map(count).collect()
}

fn are(manager: &ControllerEventManager<Acts>, expected: &[(&str, u64)]) {
    let expected = expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert_eq!(counts(manager), expected);
}

#[test]
fn a01_there_are_17_states_and_their_values_are_their_places() {
    let names = [
        "Idle",
        "ControllerChange",
        "BrokerChange",
        "TopicChange",
        "TopicDeletion",
        "AlterPartitionReassignment",
        "AutoLeaderBalance",
        "ManualLeaderBalance",
        "ControlledShutdown",
        "IsrChange",
        "LeaderAndIsrResponseReceived",
        "LogDirChange",
        "ControllerShutdown",
        "UncleanLeaderElectionEnable",
        "TopicUncleanLeaderElectionEnable",
        "ListPartitionReassignment",
        "UpdateMetadataResponseReceived",
    ];
    let states = ControllerState::ALL.iter().map(|state| (state.value(), state.name()));
    assert!(states.eq((0..).zip(names)));
    assert_eq!((ControllerState::ALL.len(), size_of::<ControllerState>()), (17, 1));
}

#[test]
fn a02_fifteen_states_are_timed_two_of_them_under_older_names() {
    let timers: Vec<_> = ControllerState::ALL.iter().filter_map(|state| state.rate_metric()).collect();
    assert_eq!(timers, TIMERS);
    assert_eq!(ControllerState::BrokerChange.rate_metric(), Some("LeaderElectionRateAndTimeMs"));
    assert_eq!(
        ControllerState::AlterPartitionReassignment.rate_metric(),
        Some("PartitionReassignmentRateAndTimeMs")
    );
    for untimed in [ControllerState::Idle, ControllerState::UpdateMetadataResponseReceived] {
        assert_eq!(untimed.rate_metric(), None);
    }
}

#[test]
fn s2_2_there_are_25_events_in_16_states() {
    let mut of_state = BTreeMap::new();
    for (_, state) in EVENTS {
        *of_state.entry(state.value()).or_insert(0) += 1;
    }
    let counts: Vec<_> = of_state.into_iter().collect();
    let expected = [(1, 5), (2, 2), (3, 2), (4, 2), (5, 3), (6, 1), (7, 1), (8, 1), (9, 1), (10, 1), (11, 1)];
    assert_eq!(counts[..11], expected);
    assert_eq!(counts[11..], [(12, 1), (13, 1), (14, 1), (15, 1), (16, 1)]);
}

/// One of each, in Kafka's order.
fn one_of_each() -> Vec<ControllerEvent> {
    use ControllerEvent as E;
    let partition = || TopicPartition::new("t", 0);
    vec![
        E::Startup,
        E::ControllerChange,
        E::Reelect,
        E::RegisterBrokerAndReelect,
        E::Expire,
        E::ShutdownEventThread,
        E::AutoPreferredReplicaLeaderElection,
        E::UncleanLeaderElectionEnable,
        E::TopicUncleanLeaderElectionEnable { topic: "t".into() },
        E::ControlledShutdown { id: 1, broker_epoch: 1, callback: Reply::pair().0 },
        E::LeaderAndIsrResponseReceived { broker_id: 1, errors: BTreeMap::new() },
        E::UpdateMetadataResponseReceived { broker_id: 1, error: None },
        E::TopicDeletionStopReplicaResponseReceived {
            replica_id: 1,
            request_error: None,
            partition_errors: BTreeMap::new(),
        },
        E::BrokerChange,
        E::BrokerModifications { broker_id: 1 },
        E::TopicChange,
        E::LogDirEventNotification,
        E::PartitionModifications { topic: "t".into() },
        E::TopicDeletion,
        E::ZkPartitionReassignment,
        E::ApiPartitionReassignment { reassignments: BTreeMap::new(), callback: Reply::pair().0 },
        E::PartitionReassignmentIsrChange { partition: partition() },
        E::IsrChangeNotification,
        E::ReplicaLeaderElection {
            partitions: None,
            election: ElectionType::Preferred,
            trigger: ElectionTrigger::ZkTriggered,
            callback: None,
        },
        E::ListPartitionReassignments { partitions: None, callback: Reply::pair().0 },
    ]
}

#[test]
fn s2_2_every_event_has_its_name_and_state() {
    let described = one_of_each().into_iter().map(|event| (event.name(), event.state()));
    assert!(described.eq(EVENTS));
}

#[test]
fn a03_the_originals_metrics_are_there_and_no_others() {
    let mut manager = manager(|_| {});
    manager.start().unwrap();
    let names: Vec<_> = manager.metrics().into_iter().map(|metric| metric.name).collect();
    let mut expected = vec![
        "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs".to_owned(),
        "kafka.controller:type=ControllerEventManager,name=EventQueueSize".to_owned(),
        "kafka.controller:type=KafkaController,name=ControllerState".to_owned(),
    ];
    expected.extend(TIMERS.map(|timer| format!("kafka.controller:type=ControllerStats,name={timer}")));
    assert_eq!(names, expected);
}

#[test]
fn b05_a_successful_event_is_timed_under_its_state_alone() {
    let mut manager = manager(|_| {});
    manager.start().unwrap();
    run(&manager, ControllerEvent::AutoPreferredReplicaLeaderElection);
    are(&manager, &[("EventQueueTimeMs", 1), ("AutoLeaderBalanceRateAndTimeMs", 1)]);
    assert_eq!(manager.state(), ControllerState::Idle);
}

#[test]
fn b06_an_event_that_panics_is_timed_and_the_next_one_runs() {
    let mut manager = manager(|event| assert!(!matches!(event, ControllerEvent::BrokerChange), "on purpose"));
    manager.start().unwrap();
    run(&manager, ControllerEvent::BrokerChange);
    run(&manager, ControllerEvent::TopicChange);
    are(
        &manager,
        &[("EventQueueTimeMs", 2), ("LeaderElectionRateAndTimeMs", 1), ("TopicChangeRateAndTimeMs", 1)],
    );
    assert_eq!((manager.state(), manager.handle().stats().failed), (ControllerState::Idle, 1));
}

#[test]
fn b08_an_event_without_a_timer_is_processed() {
    let mut manager = manager(|_| {});
    manager.start().unwrap();
    run(&manager, ControllerEvent::UpdateMetadataResponseReceived { broker_id: 1, error: None });
    are(&manager, &[("EventQueueTimeMs", 1)]);
    assert_eq!(manager.handle().stats().done, 1);
}

/// A started manager whose `Startup` blocks, entered, until something is sent.
fn gated() -> (ControllerEventManager<Acts>, mpsc::Sender<()>) {
    let (enter, entered) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let mut manager = manager(move |event| {
        if matches!(event, ControllerEvent::Startup) {
            enter.send(()).unwrap();
            released.recv().unwrap();
        }
    });
    manager.start().unwrap();
    manager.put(ControllerEvent::Startup).unwrap();
    entered.recv().unwrap();
    (manager, release)
}

#[test]
fn c08_a_close_answers_the_callers_of_what_it_preempts_while_the_handler_is_busy() {
    let (mut manager, release) = gated();
    let partitions = [TopicPartition::new("t", 0), TopicPartition::new("t", 1)];
    let (elected, election) = Reply::pair();
    let (shut, shutdown) = Reply::pair();
    let (moved, reassignment) = Reply::pair();
    let (listed, list) = Reply::pair();
    for event in [
        ControllerEvent::ReplicaLeaderElection {
            partitions: Some(partitions.to_vec()),
            election: ElectionType::Preferred,
            trigger: ElectionTrigger::AdminClientTriggered,
            callback: Some(elected),
        },
        ControllerEvent::ControlledShutdown { id: 0, broker_epoch: 0, callback: shut },
        ControllerEvent::ApiPartitionReassignment { reassignments: BTreeMap::new(), callback: moved },
        ControllerEvent::ListPartitionReassignments { partitions: None, callback: listed },
    ] {
        manager.put(event).unwrap();
    }
    let closing = std::thread::spawn(move || manager.close().is_some());
    let refused = |partition: &TopicPartition| (partition.clone(), Err(ControllerError::NotController));
    assert_eq!(election.wait().unwrap(), partitions.iter().map(refused).collect());
    assert_eq!(shutdown.wait().unwrap(), Err(ControllerError::ControllerMoved));
    assert_eq!(reassignment.wait().unwrap(), Err(ControllerError::NotController));
    assert_eq!(list.wait().unwrap(), Err(ControllerError::NotController));
    release.send(()).unwrap();
    assert!(closing.join().unwrap());
}

#[test]
fn s4_7_nothing_of_the_old_session_runs_after_its_expiry() {
    let (manager, release) = gated();
    let old = manager.put(ControllerEvent::TopicChange).unwrap();
    let expire = manager.clear_and_put(ControllerEvent::Expire).unwrap();
    let waiting = old.await_processing();
    assert_eq!(waiting, Err(crate::WaitError::NotRun(NotRun::Preempted)));
    release.send(()).unwrap();
    expire.await_processing().unwrap();
    run(&manager, ControllerEvent::RegisterBrokerAndReelect);
    are(&manager, &[("EventQueueTimeMs", 3), ("ControllerChangeRateAndTimeMs", 3)]);
}

#[test]
fn e02_closing_again_is_harmless_and_leaves_no_metrics() {
    let mut manager = manager(|_| {});
    manager.start().unwrap();
    assert!(manager.close().is_some());
    assert!(manager.close().is_none());
    assert_eq!(manager.metrics(), []);
}

#[test]
fn e03_a_manager_that_was_never_started_closes_at_once_and_preempts_what_waits() {
    let mut manager = manager(|_| {});
    let (callback, answer) = Reply::pair();
    manager.put(ControllerEvent::ControlledShutdown { id: 1, broker_epoch: 0, callback }).unwrap();
    manager.put(ControllerEvent::TopicChange).unwrap();
    assert!(manager.close().is_some());
    assert_eq!(answer.wait().unwrap(), Err(ControllerError::ControllerMoved));
    assert_eq!((manager.handle().stats().preempted, manager.metrics().len()), (2, 0));
}

#[test]
fn e06_the_shutdown_event_is_never_a_state_and_never_reaches_the_processor() {
    let mut manager = manager(|event| assert_ne!(event.name(), "ShutdownEventThread"));
    manager.start().unwrap();
    run(&manager, ControllerEvent::ShutdownEventThread);
    let counts = counts(&manager);
    assert!(!counts.contains_key("ControllerShutdownRateAndTimeMs"), "{counts:?}");
    assert_eq!(manager.handle().stats().failed, 0);
}

#[test]
fn e09_a_manager_starts_once() {
    let mut manager = manager(|_| {});
    manager.start().unwrap();
    assert!(matches!(manager.start(), Err(StartError::Started)));
    run(&manager, ControllerEvent::TopicChange);
    manager.close();
    assert!(matches!(manager.start(), Err(StartError::Closed)));
    let refused = manager.put(ControllerEvent::TopicChange).unwrap_err();
    assert_eq!(refused.into_event().name(), "TopicChange");
}

#[test]
fn f01_the_time_in_the_queue_ends_where_processing_starts() {
    let clock = MockClock::new();
    let advances = clock.clone();
    let (open, latch) = mpsc::channel();
    let acts = Acts(Box::new(move |_| {
        latch.recv().unwrap();
        advances.advance(Duration::from_millis(500));
    }));
    let mut manager = ControllerEventManager::with_options(1, acts, LoopOptions::mocked(&clock));
    manager.start().unwrap();
    let events = [(); 2].map(|()| manager.put(ControllerEvent::TopicChange).unwrap());
    assert_eq!(events[0].enqueue_time_ms(), 0);
    for event in &events {
        open.send(()).unwrap();
        event.ticket().wait_finished().unwrap();
    }
    let MetricValue::Histogram { count, min, max, .. } = manager.metrics()[0].value else { panic!() };
    assert_eq!((count, min, max), (2, 0.0, 500.0));
}

#[test]
fn s4_8_an_event_with_a_callback_that_is_dropped_still_answers() {
    let (callback, answer) = Reply::pair();
    drop(ControllerEvent::ListPartitionReassignments { partitions: None, callback });
    assert!(matches!(answer.wait(), Err(Abandoned)));
}
