//! A controller whose session expires while requests wait: `cargo run -p controller-events --example session_expiry`.
//!
//! Kafka's expiry protocol. Whoever notices the expiry clears the queue behind an `Expire` event and waits until that
//! has started: from then on nothing of the old session can run, every caller of the old session has been answered, and
//! the new session may begin. A periodic event shows scheduling by tag.

use controller_events::{
    ClearScope, Cx, Event, EventLoop, EventState, Fault, LoopOptions, MonotonicClock, NotRun, Processor,
    Reply, StopReason, When,
};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ControllerState {
    Idle,
    ControllerChange,
    TopicChange,
}

impl EventState for ControllerState {
    const IDLE: Self = Self::Idle;
    const ALL: &'static [Self] = &[Self::Idle, Self::ControllerChange, Self::TopicChange];

    fn value(self) -> u8 {
        self as u8
    }

    fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::ControllerChange => "ControllerChange",
            Self::TopicChange => "TopicChange",
        }
    }

    fn rate_metric(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::ControllerChange => Some("ControllerChangeRateAndTimeMs"),
            Self::TopicChange => Some("TopicChangeRateAndTimeMs"),
        }
    }
}

/// What a caller is told.
type Created = Result<u64, &'static str>;

enum ControllerEvent {
    CreateTopic { name: &'static str, reply: Reply<Created> },
    Expire,
    Register,
    Report,
}

impl Event for ControllerEvent {
    type State = ControllerState;

    fn state(&self) -> ControllerState {
        match self {
            Self::CreateTopic { .. } | Self::Report => ControllerState::TopicChange,
            Self::Expire | Self::Register => ControllerState::ControllerChange,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::CreateTopic { .. } => "CreateTopic",
            Self::Expire => "Expire",
            Self::Register => "Register",
            Self::Report => "Report",
        }
    }

    fn not_run(self, why: NotRun) {
        if let Self::CreateTopic { name, reply } = self {
            println!("    {name}: not run, {why}");
            reply.send(Err("not the controller"));
        }
    }
}

#[derive(Default)]
struct Controller {
    session: u64,
    active: bool,
    topics: Vec<&'static str>,
}

impl Processor for Controller {
    type Event = ControllerEvent;

    fn process(&mut self, event: ControllerEvent, cx: &mut Cx<'_, ControllerEvent>) -> Result<(), Fault> {
        match event {
            ControllerEvent::Register => {
                self.session += 1;
                self.active = true;
                println!("session {} begins", self.session);
            }
            ControllerEvent::Expire => {
                self.active = false;
                println!("session {} has expired", self.session);
            }
            ControllerEvent::CreateTopic { name, reply } if self.active => {
                self.topics.push(name);
                reply.send(Ok(self.session));
            }
            ControllerEvent::CreateTopic { reply, .. } => reply.send(Err("not the controller")),
            ControllerEvent::Report => {
                println!("    topics so far: {:?}", self.topics);
                let next = When::At(cx.now() + Duration::from_millis(10));
                // Refused only when the loop ends, and then no report is wanted.
                drop(cx.handle().schedule(Some("report".into()), next, ControllerEvent::Report));
            }
        }
        Ok(())
    }

    fn on_stop(&mut self, why: StopReason) {
        println!("stopped: {why:?}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = LoopOptions::new(Arc::new(MonotonicClock::start()));
    let controller = EventLoop::new(Controller::default(), options).start()?;
    let handle = controller.handle();

    handle.put(ControllerEvent::Register)?;
    let create = |name| {
        let (reply, answer) = Reply::pair();
        (name, handle.put(ControllerEvent::CreateTopic { name, reply }), answer)
    };
    let mut answers = vec![create("orders")];
    handle.put(ControllerEvent::Report)?.wait_finished()?;
    answers.extend(["payments", "refunds", "returns"].map(create));

    let expired = handle.clear_and_put(ControllerEvent::Expire, ClearScope::Fifo)?;
    expired.ticket.wait_started()?;
    println!("{} events of the old session were preempted", expired.count);
    handle.put(ControllerEvent::Register)?;

    for (name, put, answer) in answers {
        put?;
        println!("    {name}: {:?}", answer.wait()?);
    }
    let controller = controller.close()?;
    println!("{} topics, session {}", controller.topics.len(), controller.session);
    Ok(())
}
