//! The task executors: registration in two steps, their streams, their loss.

use std::sync::Arc;

use controller_events::Handle;
use heartbeat::Liveness;
use rand::RngExt;
use runtime_core::{AllocationId, Incarnation, InstanceId, JobId, ResourceId};
use wire::convert::{WireId as _, resource_id};
use wire::fencing::Fence;
use wire::registration::{self, Registered};
use wire::stream::Duplex;
use wire::{Address, MessageStream, RpcError, TaskExecutorGateway, v1};

use super::{ResourceManagerProcessor, Workers};
use crate::event::RmEvent;
use crate::slot_manager::{ReportedSlot, ReportedState, SlotState};

/// A registered task executor.
pub(crate) struct TaskExecutorConnection {
    pub(super) instance: InstanceId,
    pub(super) incarnation: Incarnation,
    pub(super) gateway: Arc<dyn TaskExecutorGateway>,
    registration: v1::RegisterTaskExecutorRequest,
    talk: Duplex<v1::ResourceManagerToTaskExecutor, v1::TaskExecutorToResourceManager>,
    /// Whether its first slot report has come: before that no slot is requested there (FLINK-9427).
    reported: bool,
}

impl TaskExecutorConnection {
    /// Whether this is the registration in hand once more: its answer came too late, or not at all, and nothing has been
    /// built on it. With a new name each time, thousands that register at once would each make the last one's report void.
    fn is_repeated_by(&self, request: &v1::RegisterTaskExecutorRequest, incarnation: Incarnation) -> bool {
        !self.reported && self.incarnation == incarnation && self.registration == *request
    }

    pub(super) fn disconnect(&mut self, cause: &str) {
        let message = v1::resource_manager_to_task_executor::Message::Disconnect(v1::Disconnect {
            cause: cause.into(),
        });
        self.talk.say(message_of(message));
        self.talk.disconnect();
    }
}

const fn message_of(
    message: v1::resource_manager_to_task_executor::Message,
) -> v1::ResourceManagerToTaskExecutor {
    v1::ResourceManagerToTaskExecutor { number: 0, message: Some(message) }
}

impl ResourceManagerProcessor {
    pub(super) fn register_task_executor(
        &mut self,
        request: v1::RegisterTaskExecutorRequest,
    ) -> Result<v1::RegistrationReply, RpcError> {
        let id = resource_id(&request.resource_id, "resource_id")?;
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        let address: Address = request
            .rpc_address
            .parse()
            .map_err(|e| RpcError::application(format!("field `rpc_address`: {e}")))?;
        if let Some(refusal) = self.refuse_worker(&id).or_else(|| self.refuse_slots(&id, request.slots)) {
            return Ok(refusal.into());
        }
        if let Some(known) = self.task_executors.get(&id)
            && known.is_repeated_by(&request, incarnation)
        {
            return Ok(self.registered(Some(known.instance)));
        }
        if let Some(old) = self.task_executors.remove(&id) {
            tracing::info!(task_executor = %id, "the task executor registers again; its earlier registration ends");
            self.slots.remove_worker(&id, old.instance, self.now());
            self.tell_job_masters_of_loss(&id, old.incarnation, incarnation);
        }
        let instance = InstanceId::from_u128(self.random.random());
        let now = self.now();
        tracing::info!(task_executor = %id, address = %request.rpc_address, slots = request.slots, "registered a task executor");
        let connection = TaskExecutorConnection {
            instance,
            incarnation,
            gateway: self.parts.transport.connect_task_executor(&address),
            registration: request,
            talk: Duplex::starting(now),
            reported: false,
        };
        self.task_executors.insert(id.clone(), connection);
        self.task_executor_beats.monitor_target(id, instance, now);
        Ok(self.registered(Some(instance)))
    }

    /// A task executor that came back in another life under its old name: job masters are to let the old one go.
    fn tell_job_masters_of_loss(&mut self, id: &ResourceId, old: Incarnation, new: Incarnation) {
        if old != new {
            self.task_executor_gone(id, old, "it was started again under the same id");
        }
    }

    pub(super) fn slot_report(&mut self, request: &v1::SendSlotReportRequest) -> Result<v1::Ack, RpcError> {
        let id = resource_id(&request.resource_id, "resource_id")?;
        let instance = InstanceId::from_wire(&request.instance_id, "instance_id")?;
        let report = reported(request.report.as_ref())?;
        let now = self.now();
        if self.refuse_worker(&id).is_some() {
            return Err(RpcError::unknown_target(format!("task executor {id} is being stopped")));
        }
        let connection = self.connection(&id, instance)?;
        if connection.reported {
            self.slots.report(&id, instance, &report, now);
        } else {
            connection.reported = true;
            self.slots.add_worker(id.clone(), instance, &report, now);
            self.worker_registered(&id);
        }
        Ok(self.ack())
    }

    pub(super) fn task_executor_stream(
        &mut self,
        hello: &v1::TaskExecutorHello,
    ) -> Result<MessageStream<v1::ResourceManagerToTaskExecutor>, RpcError> {
        let id = resource_id(&hello.resource_id, "resource_id")?;
        let instance = InstanceId::from_wire(&hello.instance_id, "instance_id")?;
        Ok(self.connection(&id, instance)?.talk.connect(None))
    }

    pub(super) fn task_executor_says(
        &mut self,
        id: &ResourceId,
        instance: InstanceId,
        message: v1::TaskExecutorToResourceManager,
    ) {
        use v1::task_executor_to_resource_manager::Message;
        let Ok(connection) = self.connection(id, instance) else { return };
        let Some(message) = connection.talk.hear(message) else { return };
        match message.message {
            Some(Message::SlotAvailable(free)) => {
                let index = free.slot.map_or(u32::MAX, |slot| slot.index);
                if let Ok(allocation) = AllocationId::try_from(free.allocation_id.as_ref()) {
                    let now = self.now();
                    self.slots.slot_available(id, instance, index, allocation, now);
                }
            }
            Some(Message::Disconnect(bye)) => self.drop_task_executor(id, instance, &bye.cause),
            Some(Message::Hello(_) | Message::Ack(_)) | None => {}
        }
    }

    /// Not now, if its slots would be too many.
    fn refuse_slots(&self, id: &ResourceId, slots: u32) -> Option<registration::Reply<Registered>> {
        let most = self.parts.max_slots?;
        let others = self.task_executors.iter().filter(|(other, _)| *other != id);
        let taken = others.map(|(_, other)| other.registration.slots).fold(0, u32::saturating_add);
        if taken.saturating_add(slots) <= most {
            return None;
        }
        tracing::warn!(task_executor = %id, slots, taken, "not registered: its slots would exceed slots.max ({most})");
        Some(registration::Reply::Failure(format!(
            "{taken} slots are registered, and with its {slots} there would be more than slots.max ({most}) of the \
             resource manager"
        )))
    }

    /// As [`Self::drop_task_executor`], of one that is not waited for any more: a worker is stopped, whatever it does.
    pub(super) fn give_up_task_executor(&mut self, id: &ResourceId, instance: InstanceId, cause: &str) {
        if self.connection(id, instance).is_ok() {
            self.drop_task_executor(id, instance, cause);
            self.give_up_worker(id);
        }
    }

    /// Ends a registration: its slots are gone, and every job master hears of it at once (FLINK-34526).
    pub(super) fn drop_task_executor(&mut self, id: &ResourceId, instance: InstanceId, cause: &str) {
        if self.connection(id, instance).is_err() {
            return;
        }
        self.worker_left(id);
        let Some(mut connection) = self.task_executors.remove(id) else { return };
        tracing::warn!(task_executor = %id, cause, "a task executor is gone");
        connection.disconnect(cause);
        self.task_executor_beats.unmonitor_incarnation(id, &instance);
        self.task_executor_gone(id, connection.incarnation, cause);
        let now = self.now();
        self.slots.remove_worker(id, instance, now);
    }

    pub(super) fn free_inactive(&mut self, id: &ResourceId, job: JobId) {
        use v1::resource_manager_to_task_executor::Message;
        if let Some(connection) = self.task_executors.get_mut(id) {
            let job_id = job.to_wire();
            connection.talk.say(message_of(Message::FreeInactiveSlots(v1::FreeInactiveSlots { job_id })));
        }
    }

    /// Tells all task executors who leads a job.
    pub(super) fn publish_leader(&mut self, leader: &v1::JobLeader) {
        use v1::resource_manager_to_task_executor::Message;
        for connection in self.task_executors.values_mut() {
            connection.talk.say(message_of(Message::JobLeader(leader.clone())));
        }
    }

    /// The connection of this registration.
    pub(super) fn connection(
        &mut self,
        id: &ResourceId,
        instance: InstanceId,
    ) -> Result<&mut TaskExecutorConnection, RpcError> {
        match self.task_executors.get_mut(id) {
            Some(connection) if connection.instance == instance => Ok(connection),
            Some(_) => {
                Err(RpcError::fencing(format!("registration {instance} of task executor {id} has ended")))
            }
            None => Err(RpcError::unknown_target(format!("task executor {id} is not registered here"))),
        }
    }

    /// A stream that ended may mean a dead process: it is asked at once instead of at the next interval.
    pub(super) fn probe_task_executor(
        &mut self,
        id: &ResourceId,
        instance: InstanceId,
        why: &str,
        events: &Handle<RmEvent>,
    ) {
        let Ok(connection) = self.connection(id, instance) else { return };
        tracing::info!(task_executor = %id, why, "the stream of a task executor has ended; asking whether it lives");
        let gateway = Arc::clone(&connection.gateway);
        self.send_task_executor_beats(id.clone(), instance, gateway, self.parts.heartbeats.redials(), events);
    }

    /// The cluster as it is now. Also published, for those who ask while the loop is busy. Made only for somebody who asks:
    /// it costs as much as the cluster is large.
    pub(super) fn describe(&self) -> Arc<v1::ClusterDescription> {
        let now = self.now();
        let task_executors = self
            .task_executors
            .iter()
            .map(|(id, connection)| {
                let slots = self.slots.worker(id).map_or(&[][..], |worker| &worker.slots);
                let liveness = self.task_executor_beats.liveness(id, now);
                let last = self.task_executor_beats.last_heartbeat(id);
                v1::TaskExecutorDescription {
                    resource_id: id.to_string(),
                    instance_id: connection.instance.to_wire(),
                    rpc_address: connection.registration.rpc_address.clone(),
                    data_address: connection.registration.data_address.clone(),
                    slots: connection.registration.slots,
                    free_slots: u32::try_from(slots.iter().filter(|s| **s == SlotState::Free).count())
                        .unwrap_or(u32::MAX),
                    last_heartbeat: super::beats::shown(last),
                    heartbeat_age_ms: super::beats::age_ms(liveness.as_ref()),
                    liveness: liveness.as_ref().map_or("UNKNOWN", Liveness::as_str).into(),
                    liveness_reason: liveness.as_ref().and_then(Liveness::reason).unwrap_or_default(),
                    main_loop_age_ms: super::beats::main_loop_age_ms(liveness.as_ref()),
                    phi: liveness.as_ref().and_then(|liveness| liveness.phi),
                    cpu_cores: connection.registration.cpu_cores,
                    memory_bytes: connection.registration.memory_bytes,
                    slot_status: (0..).zip(slots).map(|(index, state)| status(index, *state)).collect(),
                    rust_calls: connection.registration.rust_calls.clone(),
                }
            })
            .collect();
        let description = Arc::new(v1::ClusterDescription {
            epoch: self.parts.epoch.0,
            resource_id: self.parts.resource_id.to_string(),
            task_executors,
            pending_workers: self.parts.workers.as_ref().map_or(0, Workers::pending),
            worker_trouble: self.parts.workers.as_ref().and_then(Workers::trouble).unwrap_or_default(),
        });
        self.parts.view.store(Arc::clone(&description));
        description
    }
}

fn status(index: u32, state: SlotState) -> v1::SlotStatus {
    let (name, owner) = match state {
        SlotState::Free => (v1::SlotState::Free, None),
        SlotState::Pending { allocation, job } | SlotState::Allocated { allocation, job } => {
            (v1::SlotState::Allocated, Some((allocation, job)))
        }
    };
    v1::SlotStatus {
        index,
        state: name.into(),
        allocation_id: owner.map(|(id, _)| id.to_wire()).unwrap_or_default(),
        job_id: owner.map(|(_, job)| job.to_wire()).unwrap_or_default(),
    }
}

/// A slot report as the slot manager takes it.
pub(super) fn reported(report: Option<&v1::SlotReport>) -> Result<Vec<ReportedSlot>, RpcError> {
    let slots = report.map_or(&[][..], |r| &r.slots);
    slots
        .iter()
        .map(|slot| {
            let state = if slot.state() == v1::SlotState::Free {
                ReportedState::Free
            } else {
                ReportedState::Held {
                    allocation: AllocationId::from_wire(&slot.allocation_id, "report.allocation_id")?,
                    job: JobId::from_wire(&slot.job_id, "report.job_id")?,
                }
            };
            Ok(ReportedSlot { index: slot.index, state })
        })
        .collect()
}
