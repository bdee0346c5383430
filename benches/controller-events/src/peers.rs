//! The queues, each with its consumer on a thread of its own. Unbounded all of them.

use std::sync::{Arc, mpsc};

use controller_events::{
    Cx, Event, EventLoop, EventState, Fault, Handle, LoopOptions, MonotonicClock, NotRun, Processor,
};
use kameo::actor::Spawn as _;

use crate::job::Job;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    OursWithTickets,
    Std,
    Crossbeam,
    Tokio,
    Kameo,
    Ractor,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Ours,
        Self::OursWithTickets,
        Self::Std,
        Self::Crossbeam,
        Self::Tokio,
        Self::Kameo,
        Self::Ractor,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursWithTickets => "ours-with-tickets",
            Self::Std => "std-mpsc",
            Self::Crossbeam => "crossbeam",
            Self::Tokio => "tokio-mpsc",
            Self::Kameo => "kameo",
            Self::Ractor => "ractor",
        }
    }

    /// Peers that take so many times longer get so many times fewer events, so that a round ends within two minutes.
    pub(crate) const fn times_slower(self) -> u64 {
        match self {
            Self::Ours | Self::OursWithTickets | Self::Std | Self::Crossbeam => 1,
            Self::Tokio => 2,
            Self::Kameo | Self::Ractor => 4,
        }
    }

    /// Whether it is measured with events by value too: those that box each message by themselves gain nothing by it.
    pub(crate) const fn takes_values(self) -> bool {
        !matches!(self, Self::Kameo | Self::Ractor)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Idle,
    Running,
}

impl EventState for Doing {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[Self::Idle, Self::Running];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        if self == Self::Idle { "Idle" } else { "Running" }
    }

    fn rate_metric(self) -> Option<&'static str> {
        (self == Self::Running).then_some("RunningRateAndTimeMs")
    }
}

struct Ev<J>(J);

impl<J: Job> Event for Ev<J> {
    type State = Doing;

    fn state(&self) -> Doing {
        Doing::Running
    }

    fn name(&self) -> &'static str {
        "job"
    }

    fn not_run(self, _why: NotRun) {}
}

struct Runs<J>(std::marker::PhantomData<fn(J)>);

impl<J: Job> Processor for Runs<J> {
    type Event = Ev<J>;

    fn process(&mut self, event: Ev<J>, _cx: &mut Cx<'_, Ev<J>>) -> Result<(), Fault> {
        event.0.run();
        Ok(())
    }
}

/// The one end; the consumer ends when the last clone of it is dropped.
pub(crate) enum Append<J: Job> {
    Ours(Arc<Closes<J>>),
    OursWithTickets(Arc<Closes<J>>),
    Std(mpsc::Sender<J>),
    Crossbeam(crossbeam_channel::Sender<J>),
    Tokio(tokio::sync::mpsc::UnboundedSender<J>),
    Kameo(kameo::actor::ActorRef<KameoActor<J>>),
    Ractor(ractor::ActorRef<J>),
}

// Not derived, so that jobs need not be `Clone`.
impl<J: Job> Clone for Append<J> {
    fn clone(&self) -> Self {
        match self {
            Self::Ours(to) => Self::Ours(Arc::clone(to)),
            Self::OursWithTickets(to) => Self::OursWithTickets(Arc::clone(to)),
            Self::Std(to) => Self::Std(to.clone()),
            Self::Crossbeam(to) => Self::Crossbeam(to.clone()),
            Self::Tokio(to) => Self::Tokio(to.clone()),
            Self::Kameo(to) => Self::Kameo(to.clone()),
            Self::Ractor(to) => Self::Ractor(to.clone()),
        }
    }
}

pub(crate) struct Closes<J: Job>(Handle<Ev<J>>);

impl<J: Job> Drop for Closes<J> {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

pub(crate) struct KameoActor<J>(std::marker::PhantomData<fn(J)>);

impl<J: Job> kameo::Actor for KameoActor<J> {
    type Args = ();
    type Error = kameo::error::Infallible;

    async fn on_start((): (), _: kameo::actor::ActorRef<Self>) -> Result<Self, Self::Error> {
        Ok(Self(std::marker::PhantomData))
    }
}

pub(crate) struct Run<J>(J);

impl<J: Job> kameo::message::Message<Run<J>> for KameoActor<J> {
    type Reply = ();

    async fn handle(&mut self, run: Run<J>, _: &mut kameo::message::Context<Self, ()>) {
        run.0.run();
    }
}

struct RactorActor<J>(std::marker::PhantomData<fn(J)>);

impl<J: Job> ractor::Actor for RactorActor<J> {
    type Msg = J;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ractor::ActorRef<J>, (): ()) -> Result<(), ractor::ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ractor::ActorRef<J>,
        job: J,
        (): &mut (),
    ) -> Result<(), ractor::ActorProcessingErr> {
        job.run();
        Ok(())
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

impl<J: Job> Append<J> {
    pub(crate) fn start(kind: Kind) -> Self {
        match kind {
            Kind::Ours | Kind::OursWithTickets => {
                let options = LoopOptions::new(Arc::new(MonotonicClock::start()));
                let running =
                    EventLoop::new(Runs(std::marker::PhantomData), options).start().expect("a thread");
                let handle = Arc::new(Closes(running.handle()));
                std::thread::spawn(move || running.join().map(drop));
                if kind == Kind::Ours { Self::Ours(handle) } else { Self::OursWithTickets(handle) }
            }
            Kind::Std => {
                let (append, jobs) = mpsc::channel::<J>();
                std::thread::spawn(move || jobs.into_iter().for_each(J::run));
                Self::Std(append)
            }
            Kind::Crossbeam => {
                let (append, jobs) = crossbeam_channel::unbounded::<J>();
                std::thread::spawn(move || jobs.into_iter().for_each(J::run));
                Self::Crossbeam(append)
            }
            Kind::Tokio => {
                let (append, mut jobs) = tokio::sync::mpsc::unbounded_channel::<J>();
                std::thread::spawn(move || {
                    runtime().block_on(async {
                        while let Some(job) = jobs.recv().await {
                            job.run();
                        }
                    });
                });
                Self::Tokio(append)
            }
            Kind::Kameo => {
                let (tell, told) = mpsc::channel();
                std::thread::spawn(move || {
                    runtime().block_on(async {
                        let actor = KameoActor::<J>::spawn_with_mailbox((), kameo::mailbox::unbounded());
                        tell.send(actor.clone()).expect("somebody waits");
                        let weak = actor.downgrade();
                        drop(actor);
                        weak.wait_for_shutdown().await;
                    });
                });
                Self::Kameo(told.recv().expect("an actor"))
            }
            Kind::Ractor => {
                let (tell, told) = mpsc::channel();
                std::thread::spawn(move || {
                    runtime().block_on(async {
                        let (actor, ended) =
                            ractor::Actor::spawn(None, RactorActor::<J>(std::marker::PhantomData), ())
                                .await
                                .expect("an actor");
                        tell.send(actor).expect("somebody waits");
                        ended.await.expect("ends in order");
                    });
                });
                Self::Ractor(told.recv().expect("an actor"))
            }
        }
    }

    pub(crate) fn append(&self, job: J) {
        match self {
            Self::Ours(to) => to.0.post(Ev(job)).expect("open"),
            Self::OursWithTickets(to) => drop(to.0.put(Ev(job)).expect("open")),
            Self::Std(to) => to.send(job).expect("open"),
            Self::Crossbeam(to) => to.send(job).expect("open"),
            Self::Tokio(to) => to.send(job).map_err(drop).expect("open"),
            Self::Kameo(to) => to.tell(Run(job)).try_send().map_err(drop).expect("open"),
            Self::Ractor(to) => to.send_message(job).map_err(drop).expect("open"),
        }
    }

    /// Ends the consumer.
    pub(crate) fn stop(self) {
        if let Self::Ractor(actor) = self {
            actor.stop(None);
        }
    }
}
