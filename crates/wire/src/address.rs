//! Where a role is reached: `http://host:port`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The address of a server, in the one form `http://host:port`; cheap to clone.
///
/// ```
/// let address: wire::Address = "http://127.0.0.1:6123".parse()?;
/// assert_eq!(address.host_port(), "127.0.0.1:6123");
/// # Ok::<(), wire::address::ParseAddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Arc<str>);

/// A text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address: {reason}; expected `http://host:port`")]
pub struct ParseAddressError {
    /// What was read, cut to 255 characters.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

const SCHEME: &str = "http://";

impl Address {
    /// The whole address with its scheme.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address without its scheme: `host:port`.
    #[must_use]
    pub fn host_port(&self) -> &str {
        self.0.strip_prefix(SCHEME).unwrap_or(&self.0)
    }

    /// The address of a bound socket.
    #[must_use]
    pub fn of_socket(socket: std::net::SocketAddr) -> Self {
        Self(format!("{SCHEME}{socket}").into())
    }
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let fail = |reason| ParseAddressError { text: text.chars().take(255).collect(), reason };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| fail("it does not begin with `http://`"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(|| fail("it names no port"))?;
        if !port.bytes().all(|b| b.is_ascii_digit()) || !port.parse::<u16>().is_ok_and(|port| port != 0) {
            return Err(fail("its port is no number from 1 to 65535"));
        }
        if host.is_empty() {
            return Err(fail("it names no host"));
        }
        let bracketed = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let well_formed = match bracketed {
            Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
            None => host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')),
        };
        if !well_formed {
            return Err(fail("its host is neither a name nor an IP address (IPv6 in brackets)"));
        }
        Ok(Self(format!("{SCHEME}{rest}").into()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ip_addresses_with_a_port_are_addresses() {
        for text in
            ["http://jm-1:6123", "http://127.0.0.1:1", "http://[::1]:6120", "http://a_b.example:65535"]
        {
            assert_eq!(text.parse::<Address>().unwrap().as_str(), text);
        }
        assert_eq!("http://jm:6123/".parse::<Address>().unwrap().as_str(), "http://jm:6123");
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_reason() {
        for (text, reason) in [
            ("jm:6123", "begin"),
            ("https://jm:6123", "begin"),
            ("http://jm", "no port"),
            ("http://jm:0", "from 1 to"),
            ("http://jm:+1", "from 1 to"),
            ("http://jm:65536", "from 1 to"),
            ("http://:6123", "no host"),
            ("http://a b:6123", "neither"),
            ("http://user@jm:6123", "neither"),
            ("http://::1:6123", "neither"),
            ("http://jm:6123/path", "from 1 to"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
        }
    }
}
