//! A job master goes and another comes to its folder.

use std::fs;

use super::{JOB, OTHER, World, ask, until};
use crate::status::JobStatus;
use crate::{CancelOutcome, SubmitError};

#[tokio::test]
async fn a_job_is_stored_before_its_submission_is_answered_and_taken_up_by_the_next_life() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    master.dispatcher.submit(JOB, file.clone(), graph.clone()).await.unwrap();
    assert!(world.folder(JOB).join("submission").exists());
    let before = until(&master, JOB, |view| view.status == JobStatus::Created).await;
    master.stop().await;

    let master = world.start().await;
    let view = until(&master, JOB, |view| view.status == JobStatus::Restarting).await;
    assert_eq!((view.name.as_str(), view.restarts), ("first", 1), "its tasks begin again");
    assert_eq!(view.started_at(), before.started_at(), "its duration goes on");
    // The client's repeated request is that job, not another.
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    assert_eq!(master.dispatcher.all().len(), 1);
    master.stop().await;
}

#[tokio::test]
async fn an_output_is_overwritten_once_in_all_lives_of_a_job() {
    let world = World::new();
    let output = world.dir.path().join("out.jsonl");
    fs::write(&output, "of before\n").unwrap();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    assert!(!output.exists());
    master.stop().await;
    fs::write(&output, "committed by this job\n").unwrap();
    let master = world.start().await;
    until(&master, JOB, |view| view.status == JobStatus::Restarting).await;
    assert_eq!(fs::read_to_string(&output).unwrap(), "committed by this job\n");
    master.stop().await;
}

#[tokio::test]
async fn a_job_that_cannot_be_read_is_shown_with_a_way_out_and_the_others_go_on() {
    let world = World::new();
    let master = world.start().await;
    for (job, name) in [(JOB, "whole"), (OTHER, "damaged")] {
        let (file, graph) = world.job(name);
        master.dispatcher.submit(job, file, graph).await.unwrap();
        until(&master, job, |view| view.status == JobStatus::Created).await;
    }
    master.stop().await;
    let splits = world.folder(OTHER).join("splits");
    let content = fs::read(&splits).unwrap();
    fs::write(&splits, &content[..content.len() / 2]).unwrap();

    let master = world.start().await;
    until(&master, JOB, |view| view.status == JobStatus::Restarting).await;
    let (status, result) = ask(&master, "GET", &format!("/v1/jobs/{OTHER}/execution-result")).await;
    assert_eq!(status, 200);
    let result = &result["job-execution-result"];
    assert_eq!((&result["name"], &result["state"]), (&"damaged".into(), &"FAILED".into()), "{result}");
    let failure = result["failure"].as_str().unwrap();
    assert!(failure.contains(splits.to_str().unwrap()) && failure.contains("restore the file"), "{failure}");
    assert_eq!(master.dispatcher.cancel(OTHER).await, CancelOutcome::Ended);
    master.stop().await;

    // Whoever restores the file gets the job back.
    fs::write(&splits, content).unwrap();
    let master = world.start().await;
    until(&master, OTHER, |view| view.status == JobStatus::Restarting).await;
    master.stop().await;
}

#[tokio::test]
async fn a_job_that_is_over_leaves_its_result_and_is_not_run_again() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    master.dispatcher.submit(JOB, file.clone(), graph.clone()).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    let copy: Vec<_> = ["submission", "splits"]
        .map(|name| (world.folder(JOB).join(name), fs::read(world.folder(JOB).join(name)).unwrap()))
        .into();
    assert_eq!(master.dispatcher.cancel(JOB).await, CancelOutcome::Accepted);
    until(&master, JOB, |view| view.status == JobStatus::Canceled).await;
    for _ in 0..1_000 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        if !world.folder(JOB).exists() {
            break;
        }
    }
    assert!(!world.folder(JOB).exists(), "nothing is left of it but its result");
    master.stop().await;

    // A crash between the two would leave both: the result decides (FLINK-21928).
    fs::create_dir_all(world.folder(JOB)).unwrap();
    for (path, content) in copy {
        fs::write(path, content).unwrap();
    }
    let master = world.start().await;
    assert!(master.dispatcher.view(JOB).is_none());
    assert_eq!(master.dispatcher.past_job(JOB).unwrap().result.state, "CANCELED");
    assert!(!world.folder(JOB).exists());
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    assert!(master.dispatcher.view(JOB).is_none(), "the repeat of an old request begins nothing");
    master.stop().await;
}

#[tokio::test]
async fn a_job_whose_result_cannot_be_stored_is_remembered() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    // Where the folder of the results should be there is a file.
    let in_the_way = world.dir.path().join("jobmaster/ended-jobs");
    fs::write(&in_the_way, "").unwrap();
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    until(&master, JOB, |view| view.status == JobStatus::Created).await;
    master.dispatcher.cancel(JOB).await;
    until(&master, JOB, |view| view.status == JobStatus::Canceled).await;
    // Whatever is answered behind the event is answered after it.
    master.dispatcher.cancel(OTHER).await;
    assert!(world.folder(JOB).join("submission").exists());
    master.stop().await;
    fs::remove_file(&in_the_way).unwrap();
    let master = world.start().await;
    until(&master, JOB, |view| view.status == JobStatus::Restarting).await;
    master.stop().await;
}

#[tokio::test]
async fn a_job_that_cannot_be_stored_is_not_begun() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let master = world.start().await;
    fs::write(world.dir.path().join("jobmaster/jobs"), "in the way").unwrap();
    let refused = master.dispatcher.submit(JOB, file, graph).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Store { job: JOB, .. }), "{refused}");
    assert!(master.dispatcher.view(JOB).is_none());
    master.stop().await;
}

#[tokio::test]
async fn c103_of_two_submissions_of_one_id_one_runs_and_keeps_what_is_stored_of_it() {
    let world = World::new();
    let (file, graph) = world.job("first");
    let (other_file, other_graph) = world.job("second");
    let master = world.start().await;
    let (first, second) = tokio::join!(
        master.dispatcher.submit(JOB, file.clone(), graph.clone()),
        master.dispatcher.submit(JOB, other_file, other_graph),
    );
    assert_eq!((first, second), (Ok(()), Err(SubmitError::Duplicate(JOB))));
    let stored = fs::read_to_string(world.folder(JOB).join("submission")).unwrap();
    assert!(stored.contains("first") && !stored.contains("second"), "{stored}");
    let view = until(&master, JOB, |view| view.status == JobStatus::Created).await;
    assert_eq!(view.name, "first");
    master.dispatcher.submit(JOB, file, graph).await.unwrap();
    assert_eq!(master.dispatcher.all().len(), 1, "a repeat is that job");
    master.stop().await;
}
