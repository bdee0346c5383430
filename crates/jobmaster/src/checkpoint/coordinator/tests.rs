//! The coordinator by hand: two tasks on one task executor.

use std::collections::BTreeMap;
use std::time::Duration;

use job::options::CheckpointOptions;
use runtime_core::{AttemptId, Epoch, EpochMillis, JobId, ResourceId, Tick, VertexId};
use wire::v1;

use super::*;

fn now(millis: u64) -> Now {
    Now { tick: Tick::from_millis(millis), wall: EpochMillis(millis as i64), jitter: 0.0 }
}

fn te() -> ResourceId {
    "te-1".parse().unwrap()
}

fn attempt(subtask: u32) -> AttemptId {
    AttemptId { job: JobId::from_u128(1), term: Epoch(1), vertex: VertexId(0), subtask, attempt: 0 }
}

fn options(tolerable_failures: u32) -> CheckpointOptions {
    CheckpointOptions {
        interval: Duration::from_secs(1),
        min_pause: Duration::from_millis(500),
        timeout: Duration::from_secs(600),
        tolerable_failures,
        dir: "file:///c".into(),
        retain: 1,
    }
}

fn plan() -> Plan {
    let participants = (0..2).map(|subtask| Participant {
        attempt: attempt(subtask),
        base: v1::Figures::default(),
        resumed: None,
        part: Part::Running(te()),
    });
    let frame = v1::CheckpointMetadata {
        vertices: vec![v1::VertexSnapshot { parallelism: 2, ..v1::VertexSnapshot::default() }],
        ..v1::CheckpointMetadata::default()
    };
    Plan { frame, participants: participants.collect() }
}

fn part(name: &str) -> v1::TaskSnapshot {
    let place = Some(v1::state_handle::Place::Object(name.into()));
    let state = Some(v1::StateHandle { place, length: 10, checksum: 0 });
    v1::TaskSnapshot { state, ..v1::TaskSnapshot::default() }
}

fn started(tolerable_failures: u32) -> CheckpointCoordinator {
    let mut coordinator = CheckpointCoordinator::new(JobId::from_u128(1), options(tolerable_failures), 0, 0);
    coordinator.start(now(0));
    coordinator
}

/// Begins one, ids included; says which.
fn begin(coordinator: &mut CheckpointCoordinator, at: u64) -> u64 {
    assert!(coordinator.is_due(now(at)), "due at {at}");
    coordinator.take_effects();
    coordinator.begin(plan(), now(at));
    let mut effects = coordinator.take_effects();
    if let [CheckpointEffect::Reserve(up_to)] = effects.as_slice() {
        coordinator.reserved(*up_to, Ok(()), now(at));
        coordinator.begin(plan(), now(at));
        effects = coordinator.take_effects();
    }
    let triggered = effects.iter().find_map(|effect| match effect {
        CheckpointEffect::Trigger { checkpoint, attempts, .. } => {
            assert_eq!(
                *attempts,
                BTreeMap::from([(te(), vec![attempt(0), attempt(1)])]),
                "one call for both"
            );
            Some(*checkpoint)
        }
        _ => None,
    });
    triggered.unwrap()
}

fn acknowledge(coordinator: &mut CheckpointCoordinator, id: u64, at: u64) {
    for subtask in 0..2 {
        assert_eq!(coordinator.acknowledge(&attempt(subtask), id, part("x"), now(at)), Ack::Success);
    }
}

fn complete(coordinator: &mut CheckpointCoordinator, id: u64, at: u64) -> Vec<CheckpointEffect> {
    acknowledge(coordinator, id, at);
    coordinator.written(id, Ok(()), now(at));
    coordinator.committed(id, Ok(()), now(at));
    coordinator.take_effects()
}

fn fails_job(effects: &[CheckpointEffect]) -> bool {
    effects.iter().any(|effect| matches!(effect, CheckpointEffect::FailJob(_)))
}

fn wake_at(effects: &[CheckpointEffect]) -> Option<Tick> {
    effects.iter().find_map(|e| if let CheckpointEffect::WakeAt(_, at) = e { Some(*at) } else { None })
}

#[test]
fn c110_all_acknowledge_and_it_is_written_then_committed_then_confirmed() {
    let mut coordinator = started(0);
    let id = begin(&mut coordinator, 1000);
    acknowledge(&mut coordinator, id, 1100);
    let effects = coordinator.take_effects();
    let [CheckpointEffect::Write { metadata, kept }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((metadata.checkpoint, metadata.vertices[0].subtasks.len()), (id, 2));
    assert_eq!(kept.iter().map(|p| p.id).collect::<Vec<_>>(), [id]);
    assert!(coordinator.latest().is_none(), "nothing is restored from it before it is durable");
    coordinator.written(id, Ok(()), now(1200));
    let effects = coordinator.take_effects();
    assert!(matches!(effects.as_slice(), [CheckpointEffect::Commit { .. }]), "{effects:?}");
    assert_eq!(coordinator.latest().unwrap().pointer.id, id);
    coordinator.committed(id, Ok(()), now(1300));
    let effects = coordinator.take_effects();
    assert_eq!(effects[0], CheckpointEffect::Confirm(id));
    let latest = coordinator.stats().latest_completed.clone().unwrap();
    assert_eq!((latest.id, latest.state_size, latest.duration), (id, 20, Duration::from_millis(300)));
    assert_eq!((latest.acknowledged, latest.subtasks), (2, 2));
}

#[test]
fn they_are_begun_from_start_to_start_with_a_pause_after_the_end_and_one_at_a_time() {
    let mut coordinator = started(0);
    assert_eq!(wake_at(&coordinator.take_effects()), Some(Tick::from_millis(1000)));
    assert!(!coordinator.is_due(now(999)));
    let id = begin(&mut coordinator, 1000);
    assert!(!coordinator.is_due(now(5000)), "one is being made");
    let effects = complete(&mut coordinator, id, 1100);
    assert_eq!(wake_at(&effects), Some(Tick::from_millis(2000)), "an interval after its start");
    let id = begin(&mut coordinator, 2000);
    let effects = complete(&mut coordinator, id, 2900);
    assert_eq!(wake_at(&effects), Some(Tick::from_millis(3400)), "min_pause after its end");
    assert!(!coordinator.is_due(now(3399)) && coordinator.is_due(now(3400)));
}

#[test]
fn c111_a_decline_aborts_it_for_all_and_without_tolerance_the_job_fails() {
    let mut coordinator = started(0);
    let id = begin(&mut coordinator, 1000);
    coordinator.decline(&attempt(1), id, "disk full", now(1100));
    let effects = coordinator.take_effects();
    assert_eq!(effects[0], CheckpointEffect::Abort { checkpoint: id, latest_completed: 0 });
    assert_eq!(effects[1], CheckpointEffect::Remove(vec![id]));
    let cause =
        effects.iter().find_map(|e| if let CheckpointEffect::FailJob(c) = e { Some(c) } else { None });
    assert!(cause.unwrap().contains("disk full"), "{cause:?}");
    assert_eq!(coordinator.stats().failed, 1);
}

#[test]
fn c113_an_unknown_task_aborts_it_at_once_and_an_unreachable_one_is_not_counted() {
    for (unknown, counted) in [(true, true), (false, false)] {
        let mut coordinator = started(0);
        let id = begin(&mut coordinator, 1000);
        coordinator.trigger_failed(id, "no such task".into(), unknown, now(1001));
        let effects = coordinator.take_effects();
        assert!(effects.contains(&CheckpointEffect::Abort { checkpoint: id, latest_completed: 0 }));
        assert_eq!(fails_job(&effects), counted);
    }
}

#[test]
fn c115_the_third_counted_failure_in_a_row_fails_the_job_and_a_success_starts_over() {
    let mut coordinator = started(2);
    let mut at = 0;
    let mut fail = |coordinator: &mut CheckpointCoordinator| {
        at += 2000;
        let id = begin(coordinator, at);
        coordinator.expire(id, now(at + 1));
        fails_job(&coordinator.take_effects())
    };
    assert_eq!([fail(&mut coordinator), fail(&mut coordinator)], [false, false]);
    let id = begin(&mut coordinator, 10_000);
    complete(&mut coordinator, id, 10_001);
    at = 12_000;
    let mut fail = |coordinator: &mut CheckpointCoordinator| {
        at += 2000;
        let id = begin(coordinator, at);
        coordinator.expire(id, now(at + 1));
        fails_job(&coordinator.take_effects())
    };
    assert_eq!([fail(&mut coordinator), fail(&mut coordinator)], [false, false]);
    coordinator.skip(now(18_000));
    assert!(!fails_job(&coordinator.take_effects()), "not all running never counts");
    let id = begin(&mut coordinator, 20_000);
    coordinator.abort("a task has failed", now(20_001));
    assert!(!fails_job(&coordinator.take_effects()), "neither does a failing task; id {id}");
    let id = begin(&mut coordinator, 22_000);
    coordinator.decline(&attempt(0), id, "x", now(22_001));
    assert!(fails_job(&coordinator.take_effects()));
}

#[test]
fn c116_ids_go_on_behind_what_an_earlier_term_reserved_and_are_reserved_before_they_are_used() {
    let mut coordinator = CheckpointCoordinator::new(JobId::from_u128(1), options(0), 64, 9);
    coordinator.start(now(0));
    coordinator.take_effects();
    coordinator.begin(plan(), now(1000));
    assert_eq!(coordinator.take_effects(), [CheckpointEffect::Reserve(128)]);
    assert!(!coordinator.is_due(now(1000)), "nothing is begun before that is durable");
    coordinator.reserved(128, Ok(()), now(1001));
    assert_eq!(begin(&mut coordinator, 1001), 65);
    assert_eq!(coordinator.stats().completed, 9);
}

#[test]
fn an_id_that_cannot_be_reserved_is_a_counted_failure() {
    let mut coordinator = started(0);
    coordinator.take_effects();
    coordinator.begin(plan(), now(1000));
    coordinator.reserved(64, Err("read-only".into()), now(1001));
    assert!(fails_job(&coordinator.take_effects()));
}

#[test]
fn acknowledgements_are_told_apart_and_stray_state_is_removed() {
    let mut coordinator = started(9);
    let first = begin(&mut coordinator, 1000);
    coordinator.expire(first, now(1500));
    let second = begin(&mut coordinator, 2500);
    let mut ack = |subtask, id, name| coordinator.acknowledge(&attempt(subtask), id, part(name), now(2600));
    assert_eq!(ack(0, first, "j/late"), Ack::Late);
    assert_eq!(ack(7, second, "j/unknown"), Ack::Unknown);
    assert_eq!(ack(0, second, "used"), Ack::Success);
    assert_eq!(ack(0, second, "used"), Ack::Duplicate);
    assert_eq!(ack(1, second, "used"), Ack::Success);
    assert_eq!(ack(1, second, "used"), Ack::Duplicate);
    coordinator.written(second, Ok(()), now(2700));
    coordinator.committed(second, Ok(()), now(2700));
    assert_eq!(coordinator.acknowledge(&attempt(1), second, part("used"), now(2800)), Ack::Duplicate);
    let removed = coordinator.take_effects().into_iter().filter_map(|effect| match effect {
        CheckpointEffect::RemoveObject(name) => Some(name),
        _ => None,
    });
    let removed: Vec<String> = removed.collect();
    assert_eq!(removed, ["j/late", "j/unknown"]);
}

#[test]
fn a_task_that_finishes_has_acknowledged() {
    let mut coordinator = started(0);
    let id = begin(&mut coordinator, 1000);
    coordinator.acknowledge(&attempt(0), id, part("x"), now(1001));
    coordinator.finished(&attempt(1), v1::TaskSnapshot::default(), now(1002));
    let effects = coordinator.take_effects();
    let [CheckpointEffect::Write { metadata, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let finished: Vec<bool> = metadata.vertices[0].subtasks.iter().map(|s| s.finished).collect();
    assert_eq!(finished, [false, true]);
}

#[test]
fn metadata_that_cannot_be_written_is_counted_and_removed_unless_it_may_be_there() {
    for may_be_there in [false, true] {
        let mut coordinator = started(0);
        let id = begin(&mut coordinator, 1000);
        acknowledge(&mut coordinator, id, 1001);
        coordinator.take_effects();
        coordinator.written(id, Err(WriteFailure { cause: "unreachable".into(), may_be_there }), now(1002));
        let effects = coordinator.take_effects();
        assert!(fails_job(&effects));
        assert_eq!(effects.contains(&CheckpointEffect::Remove(vec![id])), !may_be_there);
        assert!(coordinator.latest().is_none() && !coordinator.is_finalizing());
    }
}

#[test]
fn output_that_cannot_be_made_visible_fails_the_job_and_the_checkpoint_is_restored_from() {
    let mut coordinator = started(5);
    let id = begin(&mut coordinator, 1000);
    acknowledge(&mut coordinator, id, 1001);
    coordinator.written(id, Ok(()), now(1002));
    coordinator.committed(id, Err("disk full".into()), now(1003));
    let effects = coordinator.take_effects();
    assert!(fails_job(&effects) && !effects.contains(&CheckpointEffect::Confirm(id)), "{effects:?}");
    assert_eq!(coordinator.latest().unwrap().pointer.id, id);
}

#[test]
fn more_than_are_retained_are_removed_once_a_newer_one_is_confirmed() {
    let mut coordinator = started(0);
    let first = begin(&mut coordinator, 1000);
    complete(&mut coordinator, first, 1001);
    let second = begin(&mut coordinator, 2000);
    let effects = complete(&mut coordinator, second, 2001);
    let CheckpointEffect::Write { kept, .. } = &effects[0] else { panic!("{effects:?}") };
    assert_eq!(kept.iter().map(|p| p.id).collect::<Vec<_>>(), [second]);
    let confirmed = effects.iter().position(|e| *e == CheckpointEffect::Confirm(second)).unwrap();
    assert_eq!(effects[confirmed + 1], CheckpointEffect::Remove(vec![first]));
}

#[test]
fn a_checkpoint_of_failing_tasks_is_given_up_and_the_next_one_still_comes() {
    let mut coordinator = started(0);
    let id = begin(&mut coordinator, 1000);
    coordinator.abort("a task has failed", now(1001));
    let effects = coordinator.take_effects();
    assert!(effects.contains(&CheckpointEffect::Abort { checkpoint: id, latest_completed: 0 }));
    assert_eq!(wake_at(&effects), Some(Tick::from_millis(2000)), "bug 72: it stays armed");
    coordinator.start(now(1500));
    assert!(coordinator.is_due(now(2000)), "running again changes nothing");
}

#[test]
fn the_last_one_is_taken_at_once_and_tried_again_after_an_interval() {
    let mut coordinator = started(1);
    coordinator.request_last(now(100));
    let finished = || {
        let mut plan = plan();
        for participant in &mut plan.participants {
            participant.part = Part::Finished(Box::default());
        }
        plan
    };
    assert!(coordinator.is_due(now(100)));
    coordinator.begin(finished(), now(100));
    coordinator.reserved(64, Ok(()), now(100));
    coordinator.begin(finished(), now(100));
    assert!(coordinator.is_finalizing(), "nobody has to be asked");
    let failure = WriteFailure { cause: "unreachable".into(), may_be_there: false };
    coordinator.written(1, Err(failure), now(200));
    assert!(!coordinator.is_due(now(1199)) && coordinator.is_due(now(1200)));
    coordinator.begin(finished(), now(1200));
    coordinator.written(2, Ok(()), now(1201));
    assert!(!coordinator.has_ended_the_job(), "not before its output is visible");
    coordinator.committed(2, Ok(()), now(1202));
    assert!(coordinator.has_ended_the_job());
}

#[test]
fn counts_of_earlier_attempts_go_on_and_a_split_that_was_not_asked_for_yet_is_still_being_read() {
    let mut coordinator = started(0);
    coordinator.take_effects();
    let mut plan = plan();
    let at = v1::SplitPosition { split: 3, position: Some(v1::ReadPosition { offset: 9, line: 2 }) };
    plan.participants[0].base = v1::Figures { records_in: 5, ..v1::Figures::default() };
    plan.participants[0].resumed = Some(at);
    plan.frame.figures = Some(v1::Figures { calls: 7, ..v1::Figures::default() });
    coordinator.begin(plan.clone(), now(1000));
    coordinator.reserved(64, Ok(()), now(1000));
    coordinator.begin(plan, now(1000));
    let figures = Some(v1::Figures { records_in: 2, calls: 1, ..v1::Figures::default() });
    for subtask in 0..2 {
        let snapshot = v1::TaskSnapshot { figures: figures.clone(), ..v1::TaskSnapshot::default() };
        coordinator.acknowledge(&attempt(subtask), 1, snapshot, now(1001));
    }
    let written = coordinator.take_effects().into_iter().find_map(|effect| match effect {
        CheckpointEffect::Write { metadata, .. } => Some(metadata),
        _ => None,
    });
    let metadata = written.unwrap();
    let sum = metadata.figures.unwrap();
    assert_eq!((sum.records_in, sum.calls), (9, 9));
    let first = metadata.vertices[0].subtasks[0].snapshot.clone().unwrap();
    assert_eq!(first.figures.unwrap().records_in, 7);
    assert_eq!(first.source.unwrap().reading, Some(at));
}

/// Requests: what waits, what is chosen, what is answered.
mod requests {
    use super::*;

    fn savepoint(number: u64, stop: Option<Stop>) -> Request {
        Request { number, wanted: Wanted::Savepoint { url: format!("file:///s/{number}"), stop } }
    }

    fn forced(number: u64) -> Request {
        Request { number, wanted: Wanted::Checkpoint }
    }

    /// Begins what is due, and says of which savepoint it is.
    fn begin_next(coordinator: &mut CheckpointCoordinator, at: u64) -> (u64, Option<(String, bool)>) {
        assert!(coordinator.is_due(now(at)), "due at {at}");
        coordinator.begin(plan(), now(at));
        let mut effects = coordinator.take_effects();
        if let Some(CheckpointEffect::Reserve(up_to)) = effects.last() {
            coordinator.reserved(*up_to, Ok(()), now(at));
            coordinator.begin(plan(), now(at));
            effects = coordinator.take_effects();
        }
        let trigger = effects.into_iter().find_map(|effect| match effect {
            CheckpointEffect::Trigger { checkpoint, savepoint, .. } => Some((checkpoint, savepoint)),
            _ => None,
        });
        trigger.unwrap()
    }

    fn answers(effects: &[CheckpointEffect]) -> Vec<(u64, Result<String, String>)> {
        let of = |effect: &CheckpointEffect| match effect {
            CheckpointEffect::Answer(number, result) => {
                Some((*number, result.clone().map(|done| done.location)))
            }
            _ => None,
        };
        effects.iter().filter_map(of).collect()
    }

    #[test]
    fn c121_a_savepoint_waits_for_the_running_checkpoint_and_comes_before_all_others() {
        let mut coordinator = started(0);
        let running = begin(&mut coordinator, 1000);
        coordinator.request(forced(1));
        coordinator.request(savepoint(2, None));
        coordinator.request(savepoint(3, None));
        assert!(!coordinator.is_due(now(9000)), "one is being made");
        complete(&mut coordinator, running, 1100);
        for number in [2, 3] {
            let (id, of) = begin_next(&mut coordinator, 1101);
            assert_eq!(of, Some((format!("file:///s/{number}"), false)));
            acknowledge(&mut coordinator, id, 1102);
            let effects = coordinator.take_effects();
            let [CheckpointEffect::WriteSavepoint { metadata, .. }] = effects.as_slice() else {
                panic!("{effects:?}")
            };
            assert!(metadata.savepoint);
            coordinator.written(id, Ok(()), now(1103));
            let effects = coordinator.take_effects();
            assert_eq!(answers(&effects), [(number, Ok(format!("file:///s/{number}")))]);
            let made_visible =
                |e: &_| matches!(e, CheckpointEffect::Commit { .. } | CheckpointEffect::Confirm(_));
            assert!(!effects.iter().any(made_visible), "it ends nothing: {effects:?}");
            assert_eq!(coordinator.latest().unwrap().pointer.id, running, "nothing is restored from it");
        }
        let (id, of) = begin_next(&mut coordinator, 1104);
        assert_eq!(of, None);
        let effects = complete(&mut coordinator, id, 1105);
        assert_eq!(
            answers(&effects),
            [(1, Ok(format!("file:///c/00000000000000000000000000000001/chk-{id}/metadata")))]
        );
        assert_eq!(wake_at(&effects), Some(Tick::from_millis(2104)), "an interval after its start");
    }

    #[test]
    fn c118_behind_a_savepoint_that_ends_the_job_nothing_is_begun() {
        let mut coordinator = started(0);
        coordinator.request(savepoint(1, Some(Stop::Suspend)));
        let (id, of) = begin_next(&mut coordinator, 10);
        assert_eq!(of, Some(("file:///s/1".to_owned(), true)), "tasks stand still behind it");
        acknowledge(&mut coordinator, id, 20);
        coordinator.written(id, Ok(()), now(30));
        let effects = coordinator.take_effects();
        let saved =
            effects.iter().find_map(|e| if let CheckpointEffect::Saved(s) = e { Some(s) } else { None });
        let saved = saved.unwrap();
        assert_eq!((saved.request, saved.done.location.as_str()), (1, "file:///s/1"));
        assert!(answers(&effects).is_empty(), "it is answered when the job has ended");
        assert!(!coordinator.is_due(now(1_000_000)));
    }

    #[test]
    fn c119_a_stop_whose_savepoint_fails_is_answered_and_periodic_checkpoints_go_on() {
        for failure in 0..3 {
            let mut coordinator = started(0);
            coordinator.request(savepoint(1, Some(Stop::Suspend)));
            let (id, _) = begin_next(&mut coordinator, 10);
            match failure {
                0 => coordinator.decline(&attempt(0), id, "the disk is full", now(20)),
                1 => coordinator.expire(id, now(20)),
                _ => {
                    acknowledge(&mut coordinator, id, 15);
                    let cause = "the disk is full".into();
                    coordinator.written(id, Err(WriteFailure { cause, may_be_there: false }), now(20));
                }
            }
            let effects = coordinator.take_effects();
            assert!(matches!(&answers(&effects)[..], [(1, Err(_))]), "{effects:?}");
            assert!(effects.contains(&CheckpointEffect::Abort { checkpoint: id, latest_completed: 0 }));
            assert!(effects.contains(&CheckpointEffect::Discard("file:///s/1".into())));
            assert!(!fails_job(&effects), "the job runs on");
            let id = begin(&mut coordinator, 1010);
            complete(&mut coordinator, id, 1100);
        }
    }

    #[test]
    fn a_drain_lets_the_sources_end_first_and_saves_what_has_finished() {
        let mut coordinator = started(0);
        coordinator.request(savepoint(1, Some(Stop::Drain)));
        coordinator.begin(plan(), now(10));
        coordinator.reserved(BLOCK, Ok(()), now(10));
        coordinator.begin(plan(), now(10));
        assert!(coordinator.take_effects().contains(&CheckpointEffect::DrainSources));
        assert!(coordinator.is_draining() && !coordinator.is_due(now(9000)));
        coordinator.begin(plan(), now(20));
        assert!(coordinator.is_draining(), "not before all have finished");
        let mut finished = plan();
        finished.participants.iter_mut().for_each(|p| p.part = Part::Finished(Box::new(part("x"))));
        coordinator.begin(finished, now(30));
        let effects = coordinator.take_effects();
        let Some(CheckpointEffect::WriteSavepoint { metadata, .. }) = effects.last() else {
            panic!("{effects:?}")
        };
        assert!(metadata.vertices[0].subtasks.iter().all(|s| !s.finished), "its input has not ended");
        let cause = "the disk is full".to_owned();
        coordinator.written(1, Err(WriteFailure { cause, may_be_there: false }), now(40));
        let effects = coordinator.take_effects();
        assert!(effects.iter().any(|e| matches!(e, CheckpointEffect::Undrain(_))), "{effects:?}");
        assert!(matches!(&answers(&effects)[..], [(1, Err(_))]));
    }

    #[test]
    fn whoever_cannot_be_served_is_told_why_at_once() {
        let mut coordinator = started(0);
        coordinator.request(savepoint(1, None));
        coordinator.skip(now(10));
        assert!(
            matches!(&answers(&coordinator.take_effects())[..], [(1, Err(why))] if why.contains("not all tasks"))
        );
        let mut coordinator = CheckpointCoordinator::of_savepoints(JobId::from_u128(1), 0);
        coordinator.start(now(0));
        coordinator.request(forced(2));
        assert!(
            matches!(&answers(&coordinator.take_effects())[..], [(2, Err(why))] if why.contains("no `checkpoints`"))
        );
        assert!(!coordinator.is_due(now(1_000_000)), "none is periodic");
        for number in 0..1001 {
            coordinator.request(savepoint(number, None));
        }
        assert!(matches!(&answers(&coordinator.take_effects())[..], [(1000, Err(_))]));
    }
}
