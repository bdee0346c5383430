//! The sending side of the exchange between task executors.
//!
//! A *pump* on the I/O runtime stands between the task and the stream: it takes batches from a short queue as credits
//! allow, so the task never waits for a network, and tells how the channel ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use runtime_core::ResourceId;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use wire::{Address, MessageStream, Transport, v1};

use super::channel::{Channel, Closed, ReadyList, Received, Receiver, Sender};
use super::codec::encode;
use super::credits::CreditWindow;
use super::element::{ChannelId, Element};

/// Batches between the task and its pump: one on its way out, one behind it.
const PUMP_BATCHES: usize = 2;
/// How long a pump whose task is gone waits for the consumer to have seen the end of the stream.
const LEAVE_WAIT: Duration = Duration::from_secs(5);

/// Where a channel leads.
#[derive(Clone)]
pub(crate) struct RemoteTarget {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) address: Address,
    pub(crate) task_executor: ResourceId,
}

/// How a remote channel stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum PumpState {
    #[default]
    Open,
    /// The consumer's side has everything, the end included.
    Delivered,
    /// The consumer's task is gone.
    Gone,
    Broken(String),
}

/// What a task sees of the pump of one of its channels.
pub(crate) struct Pump {
    state: Mutex<PumpState>,
    /// The consumer wants nothing but barriers and ends.
    paused: AtomicBool,
    wake: Arc<Notify>,
}

impl Pump {
    pub(crate) fn state(&self) -> PumpState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    fn pause(&self, paused: bool) {
        if self.paused.swap(paused, Ordering::AcqRel) != paused {
            self.wake.notify_one();
        }
    }

    fn settle(&self, state: PumpState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.wake.notify_one();
    }
}

/// Starts the pump of a channel on the I/O runtime. `wake` is told of room and of the channel's end.
pub(crate) fn open(
    io: &Handle,
    target: RemoteTarget,
    id: ChannelId,
    wake: Arc<Notify>,
) -> (Sender, Arc<Pump>) {
    let pump =
        Arc::new(Pump { state: Mutex::default(), paused: AtomicBool::new(false), wake: Arc::clone(&wake) });
    let inbox = Arc::new(Notify::new());
    let queue = Channel::new(id, PUMP_BATCHES, 0, ReadyList::new(Arc::clone(&inbox)));
    let sender = queue.sender(Some(wake));
    let receiver = Receiver::new(queue);
    let report = Arc::clone(&pump);
    io.spawn(async move {
        let state = run(&target, id, &receiver, &inbox, &report).await;
        // Settled first: a task that finds the queue closed is to find the reason as well.
        report.settle(state);
        drop(receiver);
    });
    (sender, pump)
}

async fn run(
    target: &RemoteTarget,
    id: ChannelId,
    queue: &Receiver,
    inbox: &Notify,
    report: &Pump,
) -> PumpState {
    let (frames, outbound) = mpsc::unbounded_channel();
    let hello = v1::ChannelHello {
        edge: id.edge,
        producer: Some(id.producer.into()),
        consumer: Some(id.consumer.into()),
    };
    // The receiving half is at hand.
    let _ = frames.send(frame(v1::frame::Frame::Hello(hello)));
    let opening = async {
        let gateway = target.transport.connect_data(&target.address);
        gateway.exchange(UnboundedReceiverStream::new(outbound).map(Ok).boxed()).await
    };
    match opening.await {
        Ok(credits) => pump(queue, inbox, frames, credits, report).await,
        Err(error) => Err(error.to_string()),
    }
    .unwrap_or_else(|cause| {
        let RemoteTarget { task_executor, address, .. } = target;
        PumpState::Broken(format!(
            "the channel {id} on task executor {task_executor} ({address}) broke: {cause}"
        ))
    })
}

async fn pump(
    queue: &Receiver,
    inbox: &Notify,
    frames: mpsc::UnboundedSender<v1::Frame>,
    mut credits: MessageStream<v1::Credit>,
    report: &Pump,
) -> Result<PumpState, String> {
    let mut window = CreditWindow::default();
    let mut number = 0;
    loop {
        while window.is_open() {
            let batch = match queue.take() {
                Received::Batch(batch) => batch,
                Received::Nothing => break,
                Received::Closed(Closed::Gone) => return leave(frames, credits).await,
                Received::Closed(Closed::Broken(cause)) => return Err(cause),
            };
            number += 1;
            let ended = matches!(batch.last(), Some(Element::End));
            let sent =
                window.spend() && frames.send(frame(v1::frame::Frame::Batch(encode(number, batch)))).is_ok();
            if ended && sent {
                return delivered(credits).await;
            }
        }
        tokio::select! {
            biased;
            credit = credits.next() => match credit {
                Some(Ok(credit)) => {
                    window.grant(credit.batches);
                    report.pause(credit.paused);
                }
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok(PumpState::Gone),
            },
            () = inbox.notified(), if window.is_open() => {}
        }
    }
}

/// All is sent: the consumer's side closes the stream once it has the end.
async fn delivered(mut credits: MessageStream<v1::Credit>) -> Result<PumpState, String> {
    while let Some(credit) = credits.next().await {
        credit.map_err(|error| error.to_string())?;
    }
    Ok(PumpState::Delivered)
}

/// The task is gone: ends the stream in good order, so that the consumer does not take it for a broken connection.
async fn leave(
    frames: mpsc::UnboundedSender<v1::Frame>,
    credits: MessageStream<v1::Credit>,
) -> Result<PumpState, String> {
    drop(frames);
    let _ = tokio::time::timeout(LEAVE_WAIT, credits.for_each(|_| std::future::ready(())).fuse()).await;
    Ok(PumpState::Gone)
}

fn frame(frame: v1::frame::Frame) -> v1::Frame {
    v1::Frame { frame: Some(frame) }
}
