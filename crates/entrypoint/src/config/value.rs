//! The types a key can have: how each is read, printed and described.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use runtime_core::ResourceId;

use super::units;

/// A type of configuration value.
pub trait Setting: Clone + Send + Sync + 'static {
    /// What would be right, to stand after "expected".
    fn expected() -> String;

    /// Reads the text of a layer. `None`: not of this type.
    fn parse(text: &str) -> Option<Self>;

    /// Text that [`parse`](Self::parse) reads as this value.
    fn print(&self) -> String;
}

/// The name of a cluster, of the same characters as a resource id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterId(String);

impl ClusterId {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ClusterId {
    fn default() -> Self {
        Self("tidegate".to_owned())
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// What peers are told to connect to: a host and, where it differs from the bound one, a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertise {
    host: String,
    port: Option<u16>,
}

impl Advertise {
    /// `HOST:PORT`, with the port of the bound address where none is given.
    #[must_use]
    pub fn at(&self, bound: SocketAddr) -> String {
        format!("{}:{}", self.host, self.port.unwrap_or(bound.port()))
    }

    /// The host alone: for another process of the same machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// The address of a server: `http://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url(String);

impl Url {
    /// The address of a server that listens here.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        Self(format!("http://{address}"))
    }

    /// The address as text, without a slash at the end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A folder that all roles see: a URL, or a path from the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(String);

impl Folder {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Words separated by blanks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub Vec<String>);

/// A value that is made at start where none is given; `auto` in a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auto<T>(pub Option<T>);

impl Setting for Duration {
    fn expected() -> String {
        "a duration such as 250ms, 10s, 5m, 1h, or a number of milliseconds".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        units::parse_duration(text)
    }

    fn print(&self) -> String {
        units::print_duration(*self)
    }
}

impl Setting for Size {
    fn expected() -> String {
        "a size such as 64KiB, 10MB, or a number of bytes".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        units::parse_size(text).map(Self)
    }

    fn print(&self) -> String {
        units::print_size(self.0)
    }
}

impl Setting for Words {
    fn expected() -> String {
        "words separated by blanks, such as --set log.format=json".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.split_whitespace().map(str::to_owned).collect()))
    }

    fn print(&self) -> String {
        self.0.join(" ")
    }
}

impl Setting for u32 {
    fn expected() -> String {
        "a whole number".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Setting for i32 {
    fn expected() -> String {
        "a whole number".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Setting for bool {
    fn expected() -> String {
        "on or off (or true, false)".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        }
    }

    fn print(&self) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

impl Setting for SocketAddr {
    fn expected() -> String {
        "an IP address and a port such as 127.0.0.1:6123 or [::1]:6123; port 0 takes any free one".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("localhost:") {
            Some(port) => Some(Self::from((Ipv4Addr::LOCALHOST, port.parse().ok()?))),
            None => text.parse().ok(),
        }
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Setting for Advertise {
    fn expected() -> String {
        "a host name or address that peers can reach, with or without a port, such as worker-1:6122"
            .to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // The last colon of a bare IPv6 address is no separator; in brackets it is.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, Some(port.parse().ok()?))
            }
            Some(_) if text.starts_with('[') => (text, None),
            Some(_) => return None,
            None => (text, None),
        };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_ip = |ip: IpAddr| !ip.is_unspecified();
        let good = match bare {
            Some(v6) => v6.parse::<Ipv6Addr>().is_ok_and(|ip| is_ip(ip.into())),
            None => {
                let named =
                    host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
                !host.is_empty() && named && host.parse::<Ipv4Addr>().map_or(true, |ip| is_ip(ip.into()))
            }
        };
        (good && port != Some(0)).then(|| Self { host: host.to_owned(), port })
    }

    fn print(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }
}

impl Setting for Url {
    fn expected() -> String {
        "an address such as http://127.0.0.1:6120".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        let uri: axum::http::Uri = text.parse().ok()?;
        let authority = uri.authority()?;
        let good = uri.scheme_str() == Some("http")
            && !authority.host().is_empty()
            && !authority.as_str().contains('@')
            && authority.port_u16() != Some(0)
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none();
        good.then(|| Self(text.trim_end_matches('/').to_owned()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}

impl Setting for PathBuf {
    fn expected() -> String {
        "a path".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::from(text))
    }

    fn print(&self) -> String {
        self.display().to_string()
    }
}

impl Setting for Folder {
    fn expected() -> String {
        "a URL or a path from the root, such as file:///var/lib/tidegate/savepoints".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        let good = text.starts_with('/') || text.split_once("://").is_some_and(|(_, rest)| !rest.is_empty());
        good.then(|| Self(text.to_owned()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}

impl Setting for ResourceId {
    fn expected() -> String {
        "1 to 255 of the characters A-Z a-z 0-9 . _ -".to_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Setting for ClusterId {
    fn expected() -> String {
        ResourceId::expected()
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse::<ResourceId>().ok().map(|name| Self(name.to_string()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}

impl<T: Setting> Setting for Option<T> {
    fn expected() -> String {
        format!("{}, or off", T::expected())
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "off" { Some(None) } else { T::parse(text).map(Some) }
    }

    fn print(&self) -> String {
        self.as_ref().map_or_else(|| "off".to_owned(), Setting::print)
    }
}

impl<T: Setting> Setting for Auto<T> {
    fn expected() -> String {
        format!("{}, or auto", T::expected())
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "auto" { Some(Self(None)) } else { T::parse(text).map(|value| Self(Some(value))) }
    }

    fn print(&self) -> String {
        self.0.as_ref().map_or_else(|| "auto".to_owned(), Setting::print)
    }
}

/// Declares an enum whose variants are the words a key may have.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl Setting for $name {
            fn expected() -> String {
                format!("one of {}", [$($word),+].join(", "))
            }

            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn print(&self) -> String {
                match self {
                    $(Self::$variant => $word,)+
                }
                .to_owned()
            }
        }
    };
}

words!(
    /// How `heartbeat.detector` judges silence.
    Detector {
        /// Dead after `heartbeat.timeout` (Flink).
        Fixed = "fixed",
        /// Dead earlier where the answers used to be regular.
        Adaptive = "adaptive",
    }
);

words!(
    /// Who starts workers: `worker.driver`.
    WorkerDriver {
        /// Nobody: task executors are started by hand or by a supervisor.
        Standalone = "standalone",
        /// The resource manager starts them as child processes.
        Process = "process",
    }
);

words!(
    /// The shape of log lines: `log.format`.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
);
