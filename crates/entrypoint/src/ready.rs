//! The one line on stdout: "I serve, and there."

use std::io::{self, Write};

use runtime_core::ResourceId;
use serde::Serialize;

use crate::role::Role;

/// What a server says once it serves. Keys that the role does not have are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReadyLine {
    /// Always true: a server that is not ready says nothing.
    pub ready: bool,
    /// The name of the role.
    pub role: &'static str,
    /// The name in the cluster.
    pub resource_id: String,
    /// Where peers connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc: Option<String>,
    /// Where people and tools connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
    /// Where `/metrics` and `/healthz` are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Where records come in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// How many slots are offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

impl ReadyLine {
    /// A line with a role and a name, and no address yet.
    #[must_use]
    pub fn new(role: Role, resource_id: &ResourceId) -> Self {
        Self {
            ready: true,
            role: role.name(),
            resource_id: resource_id.to_string(),
            rpc: None,
            rest: None,
            metrics: None,
            data: None,
            slots: None,
        }
    }

    /// Where peers connect.
    #[must_use]
    pub fn rpc(mut self, address: impl ToString) -> Self {
        self.rpc = Some(address.to_string());
        self
    }

    /// Where people and tools connect.
    #[must_use]
    pub fn rest(mut self, address: impl ToString) -> Self {
        self.rest = Some(address.to_string());
        self
    }

    /// Where `/metrics` and `/healthz` are.
    #[must_use]
    pub fn metrics(mut self, address: impl ToString) -> Self {
        self.metrics = Some(address.to_string());
        self
    }

    /// Where records come in.
    #[must_use]
    pub fn data(mut self, address: impl ToString) -> Self {
        self.data = Some(address.to_string());
        self
    }

    /// How many slots are offered.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Writes the line and flushes it.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        to.write_all(&line)?;
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_a_role_lacks_are_absent_and_the_line_ends() {
        let id: ResourceId = "te-1".parse().unwrap();
        let mut out = Vec::new();
        ReadyLine::new(Role::TaskExecutor, &id)
            .rpc("127.0.0.1:1")
            .data("127.0.0.1:2")
            .slots(2)
            .write(&mut out)
            .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"ready\":true,\"role\":\"taskexecutor\",\"resource_id\":\"te-1\",\"rpc\":\"127.0.0.1:1\",\
             \"data\":\"127.0.0.1:2\",\"slots\":2}\n"
        );
    }

    #[test]
    fn the_order_is_the_documented_one() {
        let id: ResourceId = "jm".parse().unwrap();
        let mut out = Vec::new();
        let line = ReadyLine::new(Role::JobMaster, &id).metrics("c").rest("b").rpc("a");
        line.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"ready\":true,\"role\":\"jobmaster\",\"resource_id\":\"jm\",\"rpc\":\"a\",\"rest\":\"b\",\"metrics\":\"c\"}\n"
        );
    }
}
