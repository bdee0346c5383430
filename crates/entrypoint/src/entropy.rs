//! The one place where a process draws randomness: seeds for its generators, its incarnation, parts of names.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;

use runtime_core::{Incarnation, ResourceId};

/// Sixteen bytes that nobody can foresee, from the kernel.
///
/// # Errors
/// `/dev/urandom` cannot be read; a container without `/dev` is the likely cause.
pub fn draw() -> io::Result<u128> {
    let mut bytes = [0; 16];
    let path = "/dev/urandom";
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| io::Error::new(e.kind(), format!("{path} cannot be read: {e}")))?;
    Ok(u128::from_ne_bytes(bytes))
}

/// A name for the life of this process.
///
/// # Errors
/// As [`draw`].
pub fn incarnation() -> io::Result<Incarnation> {
    draw().map(Incarnation::from_u128)
}

/// The name of a process that was given none: host, port and a random part, such as `127.0.0.1-6122-9f3c21ab`.
///
/// # Errors
/// The advertised address has characters that no resource id may have (a bracketed IPv6 address has none of them left:
/// its colons become dashes), or it is too long.
pub fn resource_id(advertised: &str, random: u128) -> Result<ResourceId, runtime_core::id::ParseIdError> {
    let host_and_port: String = advertised
        .chars()
        .filter(|c| !matches!(c, '[' | ']'))
        .map(|c| if c == ':' { '-' } else { c })
        .collect();
    format!("{host_and_port}-{:08x}", random >> 96).parse()
}

/// As [`resource_id`], of a bound address.
///
/// # Errors
/// As [`resource_id`].
pub fn resource_id_of(bound: SocketAddr, random: u128) -> Result<ResourceId, runtime_core::id::ParseIdError> {
    resource_id(&bound.to_string(), random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(draw().unwrap(), draw().unwrap());
    }

    #[test]
    fn names_are_made_of_any_address_that_can_be_bound() {
        let random = 0x9f3c_21ab_u128 << 96;
        for (bound, name) in [("127.0.0.1:6122", "127.0.0.1-6122-9f3c21ab"), ("[::1]:5", "--1-5-9f3c21ab")] {
            assert_eq!(resource_id_of(bound.parse().unwrap(), random).unwrap().as_str(), name);
        }
        assert_eq!(resource_id("worker-1:6122", 0).unwrap().as_str(), "worker-1-6122-00000000");
        assert!(resource_id("a b", 0).is_err());
    }
}
