//! What Tidegate's programs share at start: configuration, ready line, signals, logs, metrics, locks.
