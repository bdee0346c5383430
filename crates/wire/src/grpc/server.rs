//! Serving: bind first, then answer, and end in bounded time.

use super::incoming::{self, KillSwitch};
use super::options::GrpcOptions;
use super::service::ServiceRules;
use crate::address::Address;
use crate::gateway::{data, job_master, resource_manager, task_executor};
use crate::transport::{Endpoints, ServeError, Serving, StopServing};
use futures::future::BoxFuture;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Binds `bind` and serves `endpoints` there on `runtime`.
pub(super) async fn serve(
    bind: &str,
    endpoints: Endpoints,
    options: &GrpcOptions,
    runtime: &Handle,
) -> Result<Serving, ServeError> {
    let fail = |source| ServeError::Bind { bind: bind.to_owned(), source };
    let place = bind.to_owned();
    // On the transport's runtime: the caller's may have no I/O.
    let listener = runtime.spawn(async move { TcpListener::bind(place).await }).await;
    let listener = listener.map_err(|error| fail(std::io::Error::other(error)))?.map_err(fail)?;
    let local_address = Address::of_socket(listener.local_addr().map_err(fail)?);

    let rpc = ServiceRules::new(options, options.max_rpc_message);
    let exchange = ServiceRules::new(options, options.max_data_message);
    let (stop, stopped) = oneshot::channel::<()>();
    let kill = KillSwitch::default();
    let connections = incoming::accept(listener, kill.clone(), options.first_byte_timeout);
    let server = options
        .server()
        .add_optional_service(
            endpoints.resource_manager.map(|gateway| resource_manager::GrpcService::serve(gateway, rpc)),
        )
        .add_optional_service(
            endpoints.job_master.map(|gateway| job_master::GrpcService::serve(gateway, rpc)),
        )
        .add_optional_service(
            endpoints.task_executor.map(|gateway| task_executor::GrpcService::serve(gateway, rpc)),
        )
        .add_optional_service(endpoints.data.map(|gateway| data::GrpcService::serve(gateway, exchange)))
        .serve_with_incoming_shutdown(connections, async {
            // A dropped sender means the same.
            let _ = stopped.await;
        });
    let address = local_address.clone();
    let task = runtime.spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%address, %error, "the server has ended by itself");
        }
    });
    let stop = GrpcServer { stop, kill, task, grace: options.shutdown_grace };
    Ok(Serving::new(local_address, Box::new(stop)))
}

/// A running server.
struct GrpcServer {
    stop: oneshot::Sender<()>,
    kill: KillSwitch,
    task: JoinHandle<()>,
    grace: Duration,
}

impl StopServing for GrpcServer {
    fn in_order(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { stop, kill, mut task, grace } = *self;
            // The server may have ended already.
            let _ = stop.send(());
            if tokio::time::timeout(grace, &mut task).await.is_err() {
                kill.pull();
                // Its connections are gone; what is left are a few polls of its tasks.
                if tokio::time::timeout(grace, &mut task).await.is_err() {
                    task.abort();
                }
            }
        })
    }

    fn at_once(self: Box<Self>) {
        self.kill.pull();
        self.task.abort();
    }
}
