//! The end of the process: everybody is told at once, tasks stop.

use controller_events::Reply;
use tokio::task::JoinHandle;
use wire::RpcError;

use super::TaskExecutorProcessor;
use super::job::Job;
use crate::keeper::KeeperHandle;

/// Whether and how far the process is ending.
#[derive(Default)]
pub(super) struct Stopping {
    begun: bool,
    reply: Option<Reply<Vec<JoinHandle<()>>>>,
    links: Vec<JoinHandle<()>>,
}

impl TaskExecutorProcessor {
    /// A process that is ending takes nothing on.
    pub(super) fn check_running(&self) -> Result<(), RpcError> {
        if self.stopping.begun { Err(RpcError::not_started("the task executor is stopping")) } else { Ok(()) }
    }

    pub(super) fn stop(&mut self, cause: &str, reply: Reply<Vec<JoinHandle<()>>>) {
        self.stopping.reply = Some(reply);
        self.say_goodbye(cause);
        self.cancel_all_tasks();
    }

    /// Tells all peers at once. What tasks say from now on nobody hears: their job masters have let them go.
    pub(super) fn say_goodbye(&mut self, cause: &str) {
        if self.stopping.begun {
            return;
        }
        self.stopping.begun = true;
        self.stopping.links.extend(self.resource_manager.leave(cause));
        self.resource_manager_beats.stop();
        self.job_master_beats.stop();
        for job in self.jobs.values_mut() {
            self.stopping.links.extend(job.leave(cause).and_then(KeeperHandle::leave));
        }
        self.stopping.links.extend(std::mem::take(&mut self.leaving).into_values());
    }

    /// Answers whoever waits for the end, once no task runs any more.
    pub(super) fn answer_stop(&mut self) {
        if self.stopping.reply.is_some() && !self.jobs.values().any(Job::has_running_tasks) {
            let links = std::mem::take(&mut self.stopping.links);
            if let Some(reply) = self.stopping.reply.take() {
                reply.send(links);
            }
        }
    }
}
