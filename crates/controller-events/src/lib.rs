//! A single-threaded event loop: put, clear-and-put, tickets, deadlines, deferred events.
