//! A network of its own for each process, so that two of them can be cut off from each other.
//!
//! Every node is a network namespace with one address, plugged into a bridge that lies in a namespace too: no packet
//! filter of the machine has a say in it. The machine itself has the first address. It takes root.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Namespaces on a bridge. Dropped, they are removed; processes inside have to be ended before.
#[derive(Debug)]
pub struct Network {
    /// Begins the name of everything that is made.
    name: String,
    subnet: String,
    nodes: usize,
}

/// Packets from one node to another are lost while this lives.
#[derive(Debug)]
pub struct Cut {
    namespace: String,
    from: String,
}

impl Network {
    /// Makes a network.
    ///
    /// # Errors
    /// It is not allowed here, or a program for it is missing.
    pub fn new(nodes: usize) -> anyhow::Result<Self> {
        remove_stale();
        let process = std::process::id();
        let name = format!("tg{process}");
        let subnet = format!("10.213.{}", process % 250 + 1);
        let network = Self { name, subnet, nodes };
        network.make().context("no network of namespaces can be made")?;
        Ok(network)
    }

    fn make(&self) -> anyhow::Result<()> {
        let (name, subnet) = (&self.name, &self.subnet);
        let switch = format!("{name}-sw");
        ip(&format!("netns add {switch}"))?;
        ip(&format!("-n {switch} link add br0 type bridge"))?;
        ip(&format!("-n {switch} link set br0 up"))?;
        ip(&format!("link add {name}r type veth peer name host netns {switch}"))?;
        ip(&format!("-n {switch} link set host master br0 up"))?;
        ip(&format!("addr add {subnet}.1/24 dev {name}r"))?;
        ip(&format!("link set {name}r up"))?;
        for node in 0..self.nodes {
            let (namespace, address) = (self.namespace(node), self.address(node));
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("-n {namespace} link add eth0 type veth peer name p{node} netns {switch}"))?;
            ip(&format!("-n {switch} link set p{node} master br0 up"))?;
            ip(&format!("-n {namespace} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {namespace} link set eth0 up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("netns exec {namespace} iptables -L INPUT -n"))?;
        }
        Ok(())
    }

    fn namespace(&self, node: usize) -> String {
        format!("{}-{node}", self.name)
    }

    /// The address of a node.
    #[must_use]
    pub fn address(&self, node: usize) -> String {
        format!("{}.{}", self.subnet, node + 10)
    }

    /// The address under which nodes reach the machine.
    #[must_use]
    pub fn host(&self) -> String {
        format!("{}.1", self.subnet)
    }

    /// What stands before a command line, so that it runs in a node. The process is the command's own.
    #[must_use]
    pub fn prefix(&self, node: usize) -> Vec<String> {
        ["ip", "netns", "exec", &self.namespace(node)].map(str::to_owned).to_vec()
    }

    /// From now on nothing of what `from` sends reaches `to`. Neither is told.
    ///
    /// # Errors
    /// The packet filter's.
    pub fn cut(&self, from: usize, to: usize) -> anyhow::Result<Cut> {
        let cut = Cut { namespace: self.namespace(to), from: self.address(from) };
        cut.rule("-A")?;
        Ok(cut)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

impl Cut {
    fn rule(&self, change: &str) -> anyhow::Result<()> {
        let Self { namespace, from } = self;
        ip(&format!("netns exec {namespace} iptables -w {change} INPUT -s {from} -j DROP"))
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // The namespace may be gone.
        drop(self.rule("-D"));
    }
}

fn ip(arguments: &str) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments.split(' ')).output().context("`ip` cannot be started")?;
    if !output.status.success() {
        bail!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Removes what has this name. A namespace ends with its last process, its end of a cable with it.
fn remove(name: &str) {
    for namespace in namespaces().iter().filter(|namespace| namespace.split('-').next() == Some(name)) {
        drop(ip(&format!("netns del {namespace}")));
    }
    drop(ip(&format!("link del {name}r")));
}

/// Removes what processes have left that were killed.
fn remove_stale() {
    let names = namespaces();
    let owners = names.iter().filter_map(|namespace| namespace.strip_prefix("tg")?.split('-').next());
    let mut gone: Vec<&str> = owners
        .filter(|owner| owner.parse::<u32>().is_ok() && !Path::new("/proc").join(owner).exists())
        .collect();
    gone.dedup();
    for owner in gone {
        remove(&format!("tg{owner}"));
    }
}

fn namespaces() -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}
