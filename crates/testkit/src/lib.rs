//! For tests only: scenarios, a simulated cluster and a cluster of processes.
