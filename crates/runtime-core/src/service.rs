//! The shape of everything that runs for long: Options, Service, Handle.
//!
//! - **Options** are plain data. [`Options::build`] checks them and makes the other two.
//! - The **Service** owns its channels and its state; [`Service::run`] is its one loop. Nothing runs before it is called,
//!   so the caller decides on which thread or task, and a simulation decides it too.
//! - The **Handle** is cheap to clone, hides the channels, and is all that the rest of the program sees.
//!
//! A service ends when `stop` does (anything that is a future: a shutdown signal, an elapsed time, `pending()`), or when
//! its work has ended. It answers or refuses what it has accepted before it returns.
//!
//! ```
//! use runtime_core::service::{Options, Service};
//! use std::convert::Infallible;
//! use std::pin::pin;
//! use tokio::sync::mpsc;
//!
//! struct AdderOptions { queue: usize }
//! struct Adder { numbers: mpsc::Receiver<u64> }
//! #[derive(Clone)]
//! struct AdderHandle { numbers: mpsc::Sender<u64> }
//!
//! impl AdderHandle {
//!     async fn add(&self, number: u64) -> bool { self.numbers.send(number).await.is_ok() }
//! }
//!
//! impl Options for AdderOptions {
//!     type Service = Adder;
//!     type Error = Infallible;
//!
//!     fn build(self) -> Result<(Adder, AdderHandle), Infallible> {
//!         let (sender, receiver) = mpsc::channel(self.queue.max(1));
//!         Ok((Adder { numbers: receiver }, AdderHandle { numbers: sender }))
//!     }
//! }
//!
//! impl Service for Adder {
//!     type Handle = AdderHandle;
//!     type Outcome = u64;
//!
//!     async fn run(mut self, stop: impl Future<Output = ()> + Send) -> u64 {
//!         let (mut stop, mut sum) = (pin!(stop), 0);
//!         loop {
//!             tokio::select! {
//!                 biased;
//!                 number = self.numbers.recv() => match number {
//!                     Some(number) => sum += number,
//!                     None => return sum,
//!                 },
//!                 () = &mut stop => return sum,
//!             }
//!         }
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let Ok((adder, handle)) = AdderOptions { queue: 8 }.build();
//! let running = tokio::spawn(adder.run(std::future::pending()));
//! assert!(handle.add(2).await && handle.add(3).await);
//! drop(handle);
//! assert_eq!(running.await.unwrap(), 5);
//! # });
//! ```

/// Plain data that a service is built of.
pub trait Options {
    /// What is built.
    type Service: Service;
    /// Why it cannot be built.
    type Error;

    /// Checks the options and makes the service, not yet running, with its first handle.
    ///
    /// # Errors
    /// The options contradict each other, or what they name cannot be had. Nothing has been started then.
    fn build(self) -> Result<Built<Self::Service>, Self::Error>;
}

/// A service that does not run yet, and its first handle.
pub type Built<S> = (S, <S as Service>::Handle);

/// Something that runs until it is stopped or has done its work.
pub trait Service {
    /// How the rest of the program reaches it.
    type Handle: Clone + Send + Sync + 'static;
    /// What a run ends with.
    type Outcome;

    /// Runs until `stop` ends or the work is done.
    fn run(self, stop: impl Future<Output = ()> + Send) -> impl Future<Output = Self::Outcome> + Send;
}
