//! The demo cluster in containers: what is done with it by the engine and by `docker-compose`.

pub(crate) mod chaos;
pub(crate) mod compose;
mod deeds;
pub(crate) mod engine;
mod flights;
mod refused;
mod times;
