//! Binding a listener so that a restarted server gets its port again at once, and a taken port is named.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait to be accepted; the kernel cuts it to its own limit. A cluster that reconnects after a
/// failover does so all at once.
const BACKLOG: u32 = 1024;

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process, or another listener of this one, has it.
    #[error("{key}: {address} is in use by another listener; stop that one or set {key} to another port")]
    InUse {
        /// The configuration key.
        key: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// The machine does not have the address, or the port needs rights.
    #[error(
        "{key}: cannot listen on {address}: {cause}; set {key} to an address of this machine and a port above 1023"
    )]
    Refused {
        /// The configuration key.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the kernel says.
        cause: io::Error,
    },
}

/// Listens on `address`, which the configuration gave under `key`.
///
/// # Errors
/// [`ListenError`]; nothing is left open.
pub fn tcp(key: &'static str, address: SocketAddr) -> Result<TcpListener, ListenError> {
    let bind = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A predecessor's connections in TIME_WAIT must not hold the port.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|cause| match cause.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { key, address },
        _ => ListenError::Refused { key, address, cause },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn port_zero_gives_a_port_and_a_taken_one_is_named_with_its_key() {
        let first = tcp("rpc.bind", SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = first.local_addr().unwrap();
        assert_ne!(address.port(), 0);
        let refused = tcp("rest.bind", address).unwrap_err();
        assert!(matches!(refused, ListenError::InUse { key: "rest.bind", address: a } if a == address));
        assert!(refused.to_string().contains(&address.to_string()));
    }

    #[tokio::test]
    async fn a_port_is_free_again_at_once_although_a_connection_lingers() {
        let first = tcp("rpc.bind", SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = first.local_addr().unwrap();
        let client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (served, _) = first.accept().await.unwrap();
        // The side that closes first keeps the connection in TIME_WAIT.
        drop(served);
        drop(first);
        drop(client);
        assert_eq!(tcp("rpc.bind", address).unwrap().local_addr().unwrap(), address);
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_refused_with_the_reason() {
        let refused = tcp("rpc.bind", SocketAddr::from(([192, 0, 2, 1], 0))).unwrap_err();
        assert!(matches!(refused, ListenError::Refused { key: "rpc.bind", .. }));
    }
}
