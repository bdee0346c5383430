//! The frame of a server process: from the command line to the exit status.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use runtime_core::shutdown::{Shutdown, ShutdownSignal};
use runtime_core::time::TokioClock;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::args::ServerArgs;
use crate::config::{Advertise, Auto, Config, Key, keys};
use crate::listen::{self, ListenError};
use crate::ready::ReadyLine;
use crate::role::Role;
use crate::signals;
use crate::state_dir::{StateDir, StateDirError};
use crate::telemetry::{self, Health, MetricSources};

/// Threads of the runtime: a server waits most of the time, and what computes has threads of its own.
const WORKERS: usize = 2;

/// Tasks that do not end by themselves once the role has are dropped; blocking ones get this long.
const LEFTOVERS: Duration = Duration::from_millis(200);

/// What a role is given to run with, in a process of its own or in somebody else's.
#[derive(Debug)]
pub struct Server {
    /// The checked configuration.
    pub config: Config,
    /// The clock of the process.
    pub clock: TokioClock,
    /// Ends when the role is to say good-bye and return.
    pub shutdown: ShutdownSignal,
    /// What `/healthz` answers.
    pub health: Health,
    /// What `/metrics` shows.
    pub metrics: MetricSources,
    metrics_address: Option<SocketAddr>,
    /// Taken by the first ready line.
    announce: Option<Announce>,
}

#[derive(Debug)]
enum Announce {
    Stdout,
    Embedder(oneshot::Sender<ReadyLine>),
}

impl Server {
    /// For a program that runs a role inside itself: nothing is printed, and the ready line comes through the receiver
    /// (an error there says that the role ended before it was ready).
    #[must_use]
    pub fn embedded(
        config: Config,
        clock: TokioClock,
        shutdown: ShutdownSignal,
    ) -> (Self, oneshot::Receiver<ReadyLine>) {
        let (sender, receiver) = oneshot::channel();
        let server = Self {
            config,
            clock,
            shutdown,
            health: Health::starting(),
            metrics: MetricSources::default(),
            metrics_address: None,
            announce: Some(Announce::Embedder(sender)),
        };
        (server, receiver)
    }

    /// The role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.config.role()
    }

    /// Listens where the configuration says under `key`.
    ///
    /// # Errors
    /// The port is taken, or the address is not of this machine.
    pub fn listen(&self, key: &'static Key<SocketAddr>) -> Result<TcpListener, ListenError> {
        listen::tcp(key.name, self.config.get(key))
    }

    /// What peers are told to connect to, `HOST:PORT`: the advertised address, or the bound one.
    #[must_use]
    pub fn advertised(&self, key: &'static Key<Auto<Advertise>>, bound: SocketAddr) -> String {
        self.config.get(key).0.map_or_else(|| bound.to_string(), |advertise| advertise.at(bound))
    }

    /// Opens and locks the folder of this role below `state.dir`.
    ///
    /// # Errors
    /// Another process holds it, it belongs to another cluster, or it cannot be written.
    pub fn state_dir(&self) -> Result<StateDir, StateDirError> {
        let dir = StateDir::open(&self.config.get(&keys::STATE_DIR), self.role())?;
        dir.claim(self.config.get(&keys::CLUSTER_ID).as_str())?;
        Ok(dir)
    }

    /// Says that the role serves: the ready line goes out (with the address of `/metrics`), and health no longer says
    /// "starting". A second call says nothing.
    pub fn ready(&mut self, line: ReadyLine) {
        let line = match self.metrics_address {
            Some(address) => line.metrics(address),
            None => line,
        };
        self.health.started();
        match self.announce.take() {
            None => {}
            Some(Announce::Stdout) => {
                // Whoever started us may have closed stdout; that is no reason not to serve.
                if let Err(e) = line.write(io::stdout().lock()) {
                    tracing::warn!("the ready line could not be written: {e}");
                }
            }
            Some(Announce::Embedder(sender)) => {
                let _ = sender.send(line);
            }
        }
    }
}

/// Runs a server: reads this process's command line and never returns for `--help`, `--version` and wrong usage.
///
/// `main` returns once it was asked to end ([`Server::shutdown`]) and has said good-bye, or with what made it fail.
/// The status is 0 for the first and 1 for the second, 2 for a configuration that cannot be used; errors are one line
/// on stderr.
pub fn run_server<M, F>(role: Role, main: M) -> ExitCode
where
    M: FnOnce(Server) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let about = match role {
        Role::ResourceManager => "Knows the task executors and hands their slots to jobs",
        Role::JobMaster => "Accepts jobs and runs them on task executors",
        Role::TaskExecutor => "Runs tasks in slots",
    };
    let command = clap::Command::new(role.name()).version(env!("CARGO_PKG_VERSION")).about(about);
    let matches = ServerArgs::augment_args(command).get_matches();
    match ServerArgs::from_arg_matches(&matches) {
        Ok(args) => run_server_with(role, &args, main),
        Err(e) => e.exit(),
    }
}

/// As [`run_server`], for a program with a command line of its own.
pub fn run_server_with<M, F>(role: Role, args: &ServerArgs, main: M) -> ExitCode
where
    M: FnOnce(Server) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let config = match Config::load(role, &args.layers()) {
        Ok(config) => config,
        Err(e) => return signals::status(Err(e.into())),
    };
    crate::logging::start(config.get(&keys::LOG_FORMAT));
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    if args.print_config {
        use io::Write as _;
        return signals::status(io::stdout().write_all(config.print().as_bytes()).map_err(Into::into));
    }
    signals::status(run(config, main))
}

fn run<M, F>(config: Config, main: M) -> anyhow::Result<()>
where
    M: FnOnce(Server) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    let shutdown = Shutdown::new();
    signals::watch(shutdown.clone())?;
    let outcome = runtime.block_on(async {
        let (health, metrics) = (Health::starting(), MetricSources::default());
        let metrics_address = match config.get(&keys::METRICS_BIND) {
            None => None,
            Some(address) => {
                let listener = listen::tcp(keys::METRICS_BIND.name, address)?;
                let bound = listener.local_addr()?;
                tokio::spawn(telemetry::serve(listener, metrics.clone(), health.clone(), shutdown.signal()));
                Some(bound)
            }
        };
        let server = Server {
            config,
            clock: TokioClock::start(),
            shutdown: shutdown.signal(),
            health,
            metrics,
            metrics_address,
            announce: Some(Announce::Stdout),
        };
        main(server).await
    });
    // The bound of a stop holds for the leftovers of a role that failed as well.
    shutdown.trigger();
    runtime.shutdown_timeout(LEFTOVERS);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_embedder_gets_the_first_ready_line_and_health_follows() {
        let shutdown = Shutdown::new();
        let config = Config::defaults(Role::JobMaster);
        let (mut server, mut ready) = Server::embedded(config, TokioClock::start(), shutdown.signal());
        assert!(ready.try_recv().is_err());
        assert!(!server.health.is_well());
        let id = "jm".parse().unwrap();
        server.ready(ReadyLine::new(Role::JobMaster, &id).rest("127.0.0.1:1"));
        server.ready(ReadyLine::new(Role::JobMaster, &id).rest("127.0.0.1:2"));
        assert_eq!(ready.await.unwrap().rest.as_deref(), Some("127.0.0.1:1"));
        assert!(server.health.is_well());
    }

    #[test]
    fn peers_are_told_the_bound_address_unless_another_is_given() {
        let bound = SocketAddr::from(([127, 0, 0, 1], 7));
        let signal = Shutdown::new().signal();
        let (server, _) =
            Server::embedded(Config::defaults(Role::JobMaster), TokioClock::start(), signal.clone());
        assert_eq!(server.advertised(&keys::RPC_ADVERTISE, bound), "127.0.0.1:7");
        let layers =
            crate::config::Layers { set: vec!["rpc.advertise=jm:9".to_owned()], ..Default::default() };
        let config = Config::load(Role::JobMaster, &layers).unwrap();
        let (server, _) = Server::embedded(config, TokioClock::start(), signal);
        assert_eq!(server.advertised(&keys::RPC_ADVERTISE, bound), "jm:9");
    }
}
