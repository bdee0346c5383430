//! The link to the resource manager: registered for, kept up, and asked for slots over.
//!
//! While the resource manager is away the job goes on; it only gets no new slots. What it needs is declared anew on
//! every new link.

use std::sync::Arc;
use std::time::Duration;

use controller_events::{Handle, Reply};
use futures::StreamExt;
use runtime_core::{Epoch, Incarnation, JobId, ResourceId, Tick};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use wire::convert::WireId as _;
use wire::fencing::Fence;
use wire::liveness::BeatEnd;
use wire::registration::{self, Registered, RegistrationOptions};
use wire::stream::Duplex;
use wire::v1::job_master_to_resource_manager::Message;
use wire::{MessageStream, RpcError, v1};

use super::event::JmEvent;
use super::{JobMasterProcessor, Shared};
use crate::scheduler::Now;

/// Between the end of a link and the next registration.
const PAUSE: Duration = Duration::from_millis(50);

/// How long last words may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// The link as the job master's loop sees it.
pub(super) struct ResourceManagerLink {
    seed: u64,
    keeper: Option<(AbortHandle, oneshot::Sender<()>)>,
    registered: Option<Registered>,
    talk: Duplex<v1::JobMasterToResourceManager, v1::ResourceManagerToJobMaster>,
    needed: u32,
    version: u64,
}

impl ResourceManagerLink {
    pub(super) fn new(seed: u64) -> Self {
        // Nothing is said before a registration begins a conversation.
        let talk = Duplex::starting(Tick::ZERO);
        Self { seed, keeper: None, registered: None, talk, needed: 0, version: 0 }
    }

    /// Says how many slots the job needs, now and on every new link.
    pub(super) fn declare(&mut self, slots: u32) {
        self.needed = slots;
        self.version += 1;
        if self.registered.is_some() {
            self.say_requirements();
        }
    }

    fn say_requirements(&mut self) {
        let needs = v1::ResourceRequirements { version: self.version, slots: self.needed };
        self.say(Message::Requirements(needs));
    }

    /// The last words. The keeper of the link stays until they are out, and makes no other.
    pub(super) fn say_goodbye(&mut self, job_terminal: bool, cause: &str) {
        let Some((_, last_words)) = self.keeper.take() else { return };
        self.say(Message::Goodbye(v1::JobMasterGoodbye { job_terminal, cause: cause.into() }));
        self.talk.disconnect();
        self.registered = None;
        // A keeper that has ended needs no word.
        let _ = last_words.send(());
    }

    fn say(&mut self, message: Message) {
        self.talk.say(v1::JobMasterToResourceManager { number: 0, message: Some(message) });
    }
}

impl Drop for ResourceManagerLink {
    fn drop(&mut self) {
        if let Some((keeper, _)) = &self.keeper {
            keeper.abort();
        }
    }
}

impl JobMasterProcessor {
    /// Begins to keep a link up, from now to the end of the job.
    pub(super) fn connect_resource_manager(&mut self, events: &Handle<JmEvent>) {
        let keeper = Keeper {
            shared: self.shared.clone(),
            job: self.submission.job,
            name: self.submission.graph.name.clone(),
            resource_id: self.resource_id.clone(),
            events: events.clone(),
            seed: self.resource_manager.seed,
            incoming: None,
        };
        self.resource_manager.seed = self.resource_manager.seed.wrapping_add(1);
        let (last_words, goodbye) = oneshot::channel();
        let task = self.shared.runtime.spawn(keeper.keep(goodbye));
        self.resource_manager.keeper = Some((task.abort_handle(), last_words));
    }

    /// A registration is a new conversation, and begins with what the job needs.
    pub(super) fn resource_manager_registered(
        &mut self,
        registered: &Registered,
        now: Now,
    ) -> MessageStream<v1::JobMasterToResourceManager> {
        self.resource_manager_beats.monitor_target((), registered.incarnation, now.tick);
        let hello = v1::JobMasterHello {
            fence: self.fence(registered.epoch),
            job_id: self.job_bytes(),
            resource_id: self.resource_id.to_string(),
            job_master_epoch: self.shared.epoch.0,
        };
        let hello = v1::JobMasterToResourceManager { number: 0, message: Some(Message::Hello(hello)) };
        let link = &mut self.resource_manager;
        link.registered = Some(registered.clone());
        link.talk = Duplex::starting(now.tick);
        let outgoing = link.talk.connect(Some(hello));
        if link.version > 0 {
            link.say_requirements();
        }
        outgoing
    }

    pub(super) fn resource_manager_lost(&mut self, why: &str) {
        self.resource_manager.talk.disconnect();
        if self.resource_manager.registered.take().is_some() {
            tracing::warn!(job = %self.submission.job, why, "the resource manager is away; the job goes on without it");
        }
        self.resource_manager_beats.unmonitor_target(&());
    }

    pub(super) fn resource_manager_says(
        &mut self,
        message: v1::ResourceManagerToJobMaster,
        now: Now,
        events: &Handle<JmEvent>,
    ) {
        use v1::resource_manager_to_job_master::Message;
        let Some(message) = self.resource_manager.talk.hear(message) else { return };
        match message.message {
            Some(Message::TaskExecutorLost(lost)) => {
                let Ok(id) = lost.resource_id.parse::<ResourceId>() else { return };
                let Ok(incarnation) = Incarnation::try_from(lost.incarnation.as_ref()) else { return };
                if self.connection(&id, incarnation).is_ok() {
                    self.drop_task_executor(&id, &lost.cause, now);
                }
            }
            Some(Message::NotEnoughResources(needs)) => {
                self.scheduler.not_enough_resources(needs.required, needs.acquired, now);
            }
            Some(Message::Disconnect(bye)) => self.drop_resource_manager(&bye.cause, events),
            Some(Message::Ack(_)) | None => {}
        }
    }

    /// The resource manager asks for a sign of life, and gets it by a call back.
    pub(super) fn resource_manager_beat(
        &mut self,
        request: &v1::HeartbeatFromResourceManagerRequest,
        now: Now,
        events: &Handle<JmEvent>,
    ) -> Result<v1::Ack, RpcError> {
        let incarnation = Fence::of(request.fence.as_ref())?.incarnation;
        let known = self.resource_manager.registered.as_ref().filter(|r| r.incarnation == incarnation);
        let Some(registered) = known else {
            // Who is not known is not answered, as in Flink: it will notice by its timeout.
            return Ok(self.ack());
        };
        let answer = v1::HeartbeatFromJobMasterRequest {
            fence: self.fence(registered.epoch),
            job_id: self.job_bytes(),
            resource_id: self.resource_id.to_string(),
        };
        self.resource_manager_beats.receive_heartbeat(&(), &incarnation, now.tick, now.wall);
        let gateway = self.shared.transport.connect_resource_manager(&self.shared.resource_manager);
        let deadline = self.shared.heartbeats.rpc_deadline(super::beats::RPC_TIMEOUT);
        let (events, clock) = (events.clone(), self.shared.clock.clone());
        self.shared.runtime.spawn(async move {
            let end = BeatEnd::of(&clock, deadline, gateway.heartbeat_from_job_master(answer)).await;
            drop(events.put(JmEvent::ResourceManagerBeatAnswered(incarnation, end)));
        });
        Ok(self.ack())
    }

    pub(super) fn resource_manager_beat_answered(
        &mut self,
        incarnation: Incarnation,
        end: BeatEnd,
        now: Now,
        events: &Handle<JmEvent>,
    ) {
        if let Some(verdict) = self.resource_manager_beats.rpc_outcome(&(), &incarnation, end.end, now.tick) {
            self.drop_resource_manager(&verdict.explain("of this cluster"), events);
        }
    }

    /// Lets a link go that has not ended by itself, and begins to make another.
    pub(super) fn drop_resource_manager(&mut self, why: &str, events: &Handle<JmEvent>) {
        self.resource_manager_lost(why);
        if let Some((keeper, _)) = self.resource_manager.keeper.take() {
            keeper.abort();
            self.connect_resource_manager(events);
        }
    }
}

/// Registers, opens the stream, hands on what comes, and begins anew when it ends.
struct Keeper {
    shared: Shared,
    job: JobId,
    name: String,
    resource_id: ResourceId,
    events: Handle<JmEvent>,
    seed: u64,
    /// The stream of the moment.
    incoming: Option<MessageStream<v1::ResourceManagerToJobMaster>>,
}

impl Keeper {
    async fn keep(mut self, goodbye: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = goodbye => {}
            () = self.keep_up() => return,
        }
        // What was said last is on its way on the stream that is still open.
        if let Some(mut incoming) = self.incoming.take() {
            drop(
                tokio::time::timeout(GOODBYE, async { while let Some(Ok(_)) = incoming.next().await {} })
                    .await,
            );
        }
    }

    async fn keep_up(&mut self) {
        loop {
            let why = match self.register().await {
                Ok(registered) => self.serve(registered).await,
                Err(reason) => reason,
            };
            if self.events.put(JmEvent::ResourceManagerLost(why)).is_err() {
                return;
            }
            // A resource manager that takes registrations and drops their streams is not asked in a tight loop.
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn register(&mut self) -> Result<Registered, String> {
        let gateway = self.shared.transport.connect_resource_manager(&self.shared.resource_manager);
        let request = v1::RegisterJobMasterRequest {
            fence: self.fence(Epoch::UNKNOWN),
            job_id: self.job.to_wire(),
            job_name: self.name.clone(),
            resource_id: self.resource_id.to_string(),
            rpc_address: self.shared.rpc_address.as_str().to_owned(),
            job_master_epoch: self.shared.epoch.0,
        };
        self.seed = self.seed.wrapping_add(1);
        let peer = format!("resource manager at {}", self.shared.resource_manager);
        let attempt = |_| {
            let (gateway, request) = (Arc::clone(&gateway), request.clone());
            async move {
                let reply = gateway.register_job_master(request).await?;
                Ok(registration::Reply::try_from(reply)?)
            }
        };
        registration::register(&peer, RegistrationOptions::default(), self.seed, &self.shared.clock, attempt)
            .await
            .map_err(|rejected| rejected.to_string())
    }

    /// Hands on what the resource manager says until the stream ends; returns why it did.
    async fn serve(&mut self, registered: Registered) -> String {
        const ENDED: &str = "the job master has ended";
        let (reply, outgoing) = Reply::pair();
        if self.events.put(JmEvent::ResourceManagerRegistered(registered, reply)).is_err() {
            return ENDED.into();
        }
        let Ok(outgoing) = outgoing.await else { return ENDED.into() };
        let gateway = self.shared.transport.connect_resource_manager(&self.shared.resource_manager);
        let incoming = match gateway.job_master_stream(outgoing).await {
            Ok(incoming) => self.incoming.insert(incoming),
            Err(error) => return error.to_string(),
        };
        loop {
            match incoming.next().await {
                Some(Ok(message)) => {
                    if self.events.put(JmEvent::ResourceManagerSays(message)).is_err() {
                        return ENDED.into();
                    }
                }
                Some(Err(error)) => return error.to_string(),
                None => return "the resource manager closed the stream".into(),
            }
        }
    }

    fn fence(&self, epoch: Epoch) -> Option<v1::Fence> {
        Some(Fence { epoch, incarnation: self.shared.incarnation }.to_wire())
    }
}
