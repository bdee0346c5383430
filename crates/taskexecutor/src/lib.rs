//! The task executor: slots, tasks and the data exchange between them.
