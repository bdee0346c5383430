//! The one HTTP client of a process, with its pool of connections.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use rustls::{ClientConfig, RootCertStore};

use super::names::Names;

/// A service that does not even accept a connection for so long is unreachable. The record's budget may be less; this
/// one counts where it has none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Below what servers and balancers keep idle connections for (60 s and 75 s are usual), so that a request seldom meets
/// a connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();

/// The client, made at the first call: steps and subtasks share its connections.
pub(super) fn shared() -> Result<Client, String> {
    CLIENT.get_or_init(make).clone()
}

fn make() -> Result<Client, String> {
    Client::builder()
        // HTTP/2 would put all calls to a host on one connection and one window.
        .http1_only()
        .tls_backend_preconfigured(tls()?)
        .dns_resolver(Names::of_the_system())
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("no HTTP client can be made: {}", super::exchange::with_causes(&error)))
}

/// TLS with the root certificates of Mozilla compiled in: an image without any file but the program has none to load.
fn tls() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // The first one to install it wins; it is the same one everywhere in these programs.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::CryptoProvider::install_default((*provider).clone());
    }
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS configuration can be made: {error}"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
