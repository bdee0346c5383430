//! The resource manager: task executors, their slots, and the workers that hold them.
