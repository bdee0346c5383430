//! The job master: dispatcher, scheduler, slot pool and REST.
