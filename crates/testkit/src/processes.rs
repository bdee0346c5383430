//! A cluster of real processes, for what only processes show: signals, sockets, exit status, memory.
//!
//! [`ProcessCluster`] starts the three servers on free ports of the loopback interface, with their state and logs in a
//! folder of its own; [`LookupService`] is a slow service to ask; [`CommandLine`] runs `tidegate`. Whatever is dropped is
//! ended and waited for, so a test that fails leaves nothing behind but its message, which holds what the process logged.
//!
//! Not here: any knowledge of the project's crates. Addresses come from ready lines, facts from REST.

mod binaries;
mod cluster;
mod command_line;
mod lookup;
mod memory;
mod network;
mod process;

pub use binaries::{Binaries, PROGRAMS, cargo};
pub use cluster::{Place, ProcessCluster, ProcessClusterBuilder, Role, free_port};
pub use command_line::{CommandLine, CommandOutput, RunningCommand};
pub use lookup::{LookupOptions, LookupService};
pub use memory::{Usage, open_files};
pub use network::{Cut, Network};
pub use process::{Process, Signal};
