//! Sources, sinks and calls of a job, one module a system.
