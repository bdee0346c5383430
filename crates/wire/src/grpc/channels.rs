//! The connections to peers: one an address, alive while somebody holds a gateway to it.

use crate::address::Address;
use dashmap::DashMap;
use std::sync::{Arc, Weak};
use tonic::transport::{Channel, Endpoint, Error};

/// The connections of one kind, by address. Its size is bounded by the number of peers that gateways are held to.
#[derive(Default)]
pub(super) struct Channels {
    by_address: DashMap<Address, Weak<Connection>>,
}

/// One connection. It is made at the first call and made anew at the first call after it broke; dropping the last
/// holder closes it.
pub(crate) struct Connection {
    address: Address,
    channel: Channel,
    owner: Weak<Channels>,
}

impl Channels {
    /// The connection to `address`: the one there is, or a new one.
    pub(super) fn to(
        self: &Arc<Self>,
        address: &Address,
        endpoint: impl FnOnce(&Address) -> Result<Endpoint, Error>,
    ) -> Arc<Connection> {
        let mut slot = self.by_address.entry(address.clone()).or_default();
        if let Some(connection) = slot.upgrade() {
            return connection;
        }
        let endpoint = endpoint(address).unwrap_or_else(|error| {
            // An `Address` is a valid URI by construction; should tonic see it otherwise, its calls say so.
            tracing::error!(%address, %error, "the address cannot be used");
            Endpoint::from_static("http://invalid.invalid:1")
        });
        let connection = Arc::new(Connection {
            address: address.clone(),
            channel: endpoint.connect_lazy(),
            owner: Arc::downgrade(self),
        });
        *slot = Arc::downgrade(&connection);
        connection
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }
}

impl Connection {
    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.upgrade() {
            // Unless a successor has taken the place meanwhile.
            owner.by_address.remove_if(&self.address, |_, held| held.strong_count() == 0);
        }
    }
}
