//! The resource manager: registration in two steps, what it says, and the clock that runs without it.

use std::sync::Arc;

use controller_events::{Handle, Reply};
use runtime_core::{Epoch, Incarnation, InstanceId, JobId, Tick};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use wire::convert::WireId;
use wire::registration::Registered;
use wire::v1::task_executor_to_resource_manager::Message;
use wire::{ResourceManagerGateway, v1};

use super::{Fatal, TaskExecutorProcessor};
use crate::event::{Life, TeEvent};
use crate::keeper::{KeeperHandle, ResourceManagerPeer};
use crate::slots::{Freed, SlotState};

/// A registration at a resource manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) epoch: Epoch,
    pub(super) incarnation: Incarnation,
    pub(super) instance: InstanceId,
}

/// The link as the loop sees it.
pub(super) struct ResourceManagerLink {
    pub(super) gateway: Arc<dyn ResourceManagerGateway>,
    life: Life,
    keeper: Option<KeeperHandle>,
    leaving: Option<JoinHandle<()>>,
    registration: Option<Registration>,
    outbound: Option<UnboundedSender<v1::TaskExecutorToResourceManager>>,
    sent: u64,
    /// When the process gives up; absent while it is connected.
    clock: Option<Tick>,
}

impl ResourceManagerLink {
    pub(super) fn new(gateway: Arc<dyn ResourceManagerGateway>) -> Self {
        Self {
            gateway,
            life: 0,
            keeper: None,
            leaving: None,
            registration: None,
            outbound: None,
            sent: 0,
            clock: None,
        }
    }

    pub(super) const fn registration(&self) -> Option<Registration> {
        self.registration
    }

    pub(super) const fn clock(&self) -> Option<Tick> {
        self.clock
    }

    /// Says something. What is lost is repaired by the next report.
    fn say(&mut self, message: Message) {
        self.sent += 1;
        let message = v1::TaskExecutorToResourceManager { number: self.sent, message: Some(message) };
        if let Some(outbound) = &self.outbound
            && outbound.send(message).is_err()
        {
            self.outbound = None;
        }
    }

    pub(super) fn slot_available(&mut self, task_executor: &runtime_core::ResourceId, freed: Freed) {
        let slot = v1::SlotId { task_executor: task_executor.to_string(), index: freed.index };
        let allocation_id = freed.allocation.to_wire();
        self.say(Message::SlotAvailable(v1::SlotAvailable { slot: Some(slot), allocation_id }));
    }

    /// Says good-bye and lets go of the link. Yields what is left of it, to be waited for.
    pub(super) fn leave(&mut self, cause: &str) -> Option<JoinHandle<()>> {
        self.say(Message::Disconnect(v1::Disconnect { cause: cause.into() }));
        self.outbound = None;
        self.registration = None;
        self.clock = None;
        self.keeper.take().and_then(KeeperHandle::leave).or_else(|| self.leaving.take())
    }
}

impl TaskExecutorProcessor {
    /// Begins to keep a link up, and starts the clock of the registration unless it runs.
    pub(super) fn connect_resource_manager(&mut self, events: &Handle<TeEvent>) {
        let (life, seed) = self.next_life();
        let peer = ResourceManagerPeer {
            shared: Arc::clone(&self.shared),
            gateway: Arc::clone(&self.resource_manager.gateway),
            events: events.clone(),
            life,
            seed,
        };
        let after = self.resource_manager.leaving.take();
        self.resource_manager.life = life;
        self.resource_manager.keeper = Some(KeeperHandle::start(&self.shared.runtime, peer, after));
        self.start_clock();
    }

    fn start_clock(&mut self) {
        let deadline = self.now() + self.shared.registration_timeout;
        self.resource_manager.clock.get_or_insert(deadline);
    }

    /// The first step is done. From now on the resource manager may ask: it has the report before this is answered.
    pub(super) fn resource_manager_registered(
        &mut self,
        life: Life,
        registered: &Registered,
        reply: Reply<v1::SlotReport>,
    ) {
        let Some(instance) = registered.instance_id.filter(|_| life == self.resource_manager.life) else {
            return;
        };
        self.resource_manager.registration =
            Some(Registration { epoch: registered.epoch, incarnation: registered.incarnation, instance });
        let now = self.now();
        self.resource_manager_beats.monitor_target((), instance, now);
        reply.send(self.slot_report());
    }

    pub(super) fn resource_manager_connected(
        &mut self,
        life: Life,
        outbound: UnboundedSender<v1::TaskExecutorToResourceManager>,
    ) {
        if life != self.resource_manager.life || self.resource_manager.registration.is_none() {
            return;
        }
        tracing::info!(resource_manager = %self.shared.resource_manager, "registered at the resource manager");
        self.resource_manager.outbound = Some(outbound);
        self.resource_manager.clock = None;
        if let Some(registered) = self.notices.registered.take() {
            // Whoever embeds a task executor need not wait for it.
            let _ = registered.send(());
        }
    }

    /// Nothing stops because of it; only no new slots can be given.
    pub(super) fn resource_manager_lost(&mut self, life: Life, why: &str) {
        if life != self.resource_manager.life {
            return;
        }
        if self.resource_manager.registration.take().is_some() {
            tracing::warn!(why, "the resource manager is away; tasks go on without it");
        }
        self.resource_manager.outbound = None;
        self.resource_manager_beats.unmonitor_target(&());
        self.start_clock();
    }

    pub(super) fn resource_manager_rejected(&mut self, life: Life, reason: String) {
        if life == self.resource_manager.life {
            self.fatal(Fatal::Rejected { address: self.shared.resource_manager.to_string(), reason });
        }
    }

    /// The time is over in which a resource manager had to be found, if it still was not.
    pub(super) fn registration_clock(&mut self) {
        let now = self.now();
        if self.resource_manager.clock.is_some_and(|deadline| deadline <= now) {
            self.resource_manager.clock = None;
            let address = self.shared.resource_manager.to_string();
            self.fatal(Fatal::NotRegistered { address, waited: self.shared.registration_timeout });
        }
    }

    /// Lets a link go that has not ended by itself, and begins to make another.
    pub(super) fn drop_resource_manager(&mut self, why: &str, events: &Handle<TeEvent>) {
        let life = self.resource_manager.life;
        let left = self.resource_manager.leave(why);
        self.resource_manager_lost(life, why);
        self.resource_manager.leaving = left;
        self.connect_resource_manager(events);
    }

    pub(super) fn resource_manager_says(
        &mut self,
        life: Life,
        message: v1::ResourceManagerToTaskExecutor,
        events: &Handle<TeEvent>,
    ) {
        use v1::resource_manager_to_task_executor::Message;
        if life != self.resource_manager.life {
            return;
        }
        match message.message {
            Some(Message::FreeInactiveSlots(free)) => {
                let Ok(job) = JobId::from_wire(&free.job_id, "job_id") else { return };
                for freed in self.slots.free_inactive(job) {
                    self.freed(freed);
                }
            }
            Some(Message::JobLeader(leader)) => self.job_leader(&leader, events),
            Some(Message::Disconnect(bye)) => self.drop_resource_manager(&bye.cause, events),
            Some(Message::Ack(_)) | None => {}
        }
    }

    /// The slots as the resource manager is told of them.
    pub(super) fn slot_report(&self) -> v1::SlotReport {
        let slots = self.slots.views().map(|slot| {
            let state = match slot.state {
                SlotState::Free => v1::SlotState::Free,
                SlotState::Allocated { .. } => v1::SlotState::Allocated,
                SlotState::Active => v1::SlotState::Active,
                SlotState::Releasing => v1::SlotState::Releasing,
            };
            v1::SlotStatus {
                index: slot.index,
                state: state.into(),
                allocation_id: slot.owner.map(|(id, _)| id.to_wire()).unwrap_or_default(),
                job_id: slot.owner.map(|(_, job)| job.to_wire()).unwrap_or_default(),
            }
        });
        v1::SlotReport { slots: slots.collect() }
    }
}
