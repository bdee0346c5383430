//! Who is alive: heartbeat managers, monitors and failure detectors.
