//! The asynchronous I/O operator: ordered, unordered and keyed waiting with timeouts and retries.
