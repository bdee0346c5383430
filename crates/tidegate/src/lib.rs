//! The command line, and a whole cluster in one process.
