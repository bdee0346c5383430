//! The flags that the three servers share.

use std::path::PathBuf;

use clap::Args;

use crate::config::Layers;

/// The flags of a server: `#[command(flatten)]` them into a larger command line, or let
/// [`run_server`](crate::run_server) read them.
#[derive(Debug, Default, Clone, Args)]
pub struct ServerArgs {
    /// Configuration file (YAML, nested or dotted keys)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Set one key; wins over the file and the environment; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Print every key, its value and where the value came from, and exit
    #[arg(long)]
    pub print_config: bool,
}

impl ServerArgs {
    /// The layers that these flags and the environment of this process make.
    #[must_use]
    pub fn layers(&self) -> Layers {
        Layers {
            file: self.config.clone(),
            environment: std::env::vars_os().collect(),
            set: self.set.clone(),
        }
    }
}
