//! What a task executor has of one job: the link to its master, and its tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use connectors::call::Call;
use heartbeat::SelfFence;
use runtime_core::{AttemptId, Epoch, Incarnation, Tick};
use tokio::sync::mpsc::UnboundedSender;
use wire::registration::Registered;
use wire::v1::task_executor_to_job_master::Message;
use wire::{Address, JobMasterGateway, v1};

use super::cancellation::Cancellation;
use crate::event::{Life, OfferNumber};
use crate::keeper::KeeperHandle;
use crate::outbox::Outbox;
use crate::task::TaskHandle;

/// Who leads the job, as far as is known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) address: Address,
    pub(super) epoch: Epoch,
}

/// The registration at a job master: it stands when a stream has ended, until its master is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Established {
    pub(super) epoch: Epoch,
    pub(super) incarnation: Incarnation,
}

/// A job that has a slot here.
pub(super) struct Job {
    pub(super) leader: Leader,
    pub(super) gateway: Arc<dyn JobMasterGateway>,
    pub(super) life: Life,
    pub(super) keeper: Option<KeeperHandle>,
    pub(super) established: Option<Established>,
    /// Until when the job's tasks may have effects without a word from its master.
    pub(super) fence: Option<SelfFence>,
    pub(super) offers: OfferNumber,
    pub(super) tasks: BTreeMap<AttemptId, Task>,
    outbound: Option<UnboundedSender<v1::TaskExecutorToJobMaster>>,
    outbox: Outbox,
    /// The life of the job master that the outbox is for.
    hears: Option<Incarnation>,
}

/// A task that was sent here.
pub(super) struct Task {
    pub(super) handle: TaskHandle,
    pub(super) name: String,
    /// Since when it should stop.
    pub(super) cancelled: Option<Cancellation>,
    /// Why it was told to stop, where that was not its job master's wish.
    pub(super) failing: Option<String>,
    /// The number of the message that tells of its end; until that is acknowledged it is reported as deployed, or it
    /// would be taken for lost.
    pub(super) ended: Option<u64>,
    /// Holds the tables loaded that the task uses.
    pub(super) _calls: Vec<Arc<dyn Call>>,
}

impl Task {
    /// Tells it to stop. Said again, it changes nothing.
    pub(super) fn cancel(&mut self, now: Tick) {
        self.cancelled.get_or_insert(Cancellation::at(now));
        self.handle.cancel();
    }
}

impl Job {
    pub(super) fn new(
        leader: Leader,
        gateway: Arc<dyn JobMasterGateway>,
        life: Life,
        keeper: KeeperHandle,
        now: Tick,
    ) -> Self {
        Self {
            leader,
            gateway,
            life,
            keeper: Some(keeper),
            established: None,
            fence: None,
            offers: 0,
            tasks: BTreeMap::new(),
            outbound: None,
            outbox: Outbox::starting(now),
            hears: None,
        }
    }

    /// A link stands: what has not arrived is said again. A job master in another life knows nothing of what was said
    /// to the one before.
    pub(super) fn connected(
        &mut self,
        registered: &Registered,
        outbound: UnboundedSender<v1::TaskExecutorToJobMaster>,
        now: Tick,
    ) {
        if self.hears != Some(registered.incarnation) {
            self.hears = Some(registered.incarnation);
            self.outbox = Outbox::starting(now);
            self.tasks.retain(|_, task| task.ended.is_none());
        }
        self.established = Some(Established { epoch: registered.epoch, incarnation: registered.incarnation });
        for message in self.outbox.unacknowledged() {
            if outbound.send(message.clone()).is_err() {
                break;
            }
        }
        self.outbound = Some(outbound);
    }

    /// The stream has ended; whether its master has is not known yet.
    pub(super) fn disconnected(&mut self) {
        self.outbound = None;
    }

    /// Says something; yields its number.
    pub(super) fn say(&mut self, message: Message) -> u64 {
        let message = self.outbox.number(message);
        let number = message.number;
        if let Some(outbound) = &self.outbound
            && outbound.send(message).is_err()
        {
            self.outbound = None;
        }
        number
    }

    pub(super) fn is_connected(&self) -> bool {
        self.outbound.is_some()
    }

    pub(super) fn acknowledged(&mut self, number: u64) {
        self.outbox.acknowledge(number);
        self.tasks.retain(|_, task| task.ended.is_none_or(|ended| ended > number));
    }

    /// Says good-bye and lets go of the link.
    pub(super) fn leave(&mut self, cause: &str) -> Option<KeeperHandle> {
        if self.outbound.is_some() {
            self.say(Message::Disconnect(v1::Disconnect { cause: cause.into() }));
        }
        self.outbound = None;
        self.established = None;
        self.keeper.take()
    }

    /// When the tasks have to stop unless the master is heard; never where nothing runs.
    pub(super) fn lease_ends(&self) -> Option<Tick> {
        let fence = self.fence.filter(|_| self.established.is_some() && self.has_running_tasks());
        fence.map(|fence| fence.deadline())
    }

    /// Whether anything of the job still runs.
    pub(super) fn has_running_tasks(&self) -> bool {
        self.tasks.values().any(|task| task.ended.is_none())
    }

    /// The handles of all that still runs.
    pub(super) fn running_tasks(&self) -> impl Iterator<Item = &TaskHandle> {
        self.tasks.values().filter(|task| task.ended.is_none()).map(|task| &task.handle)
    }

    /// Tells a task to stop because of something that its job master did not ask for.
    pub(super) fn fail_task(&mut self, attempt: &AttemptId, cause: &str, now: Tick) {
        if let Some(task) = self.tasks.get_mut(attempt).filter(|task| task.ended.is_none()) {
            task.failing.get_or_insert_with(|| cause.to_owned());
            task.cancel(now);
        }
    }
}
