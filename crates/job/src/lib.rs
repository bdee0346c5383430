//! From a job file to a checked, planned job graph; records, filters and templates, without I/O.
