//! A plan as people read it, with every default spelled out.

use std::fmt::Write;
use std::time::Duration;

use crate::file::{show_duration, show_size};
use crate::graph::{Edge, JobGraph, OperatorSpec, Output, Partitioning, Vertex};
use crate::options::{
    CallOptions, EnrichOptions, FileSinkOptions, FileSourceOptions, FilterOptions, HttpOptions, OnEmpty,
    OnFailure, Order, RestartStrategy, Retry, SinkOptions, SourceOptions, SplitMode, StatusSet,
};

/// Prints a plan: what runs where, how records move, and every option with its default.
#[must_use]
pub fn explain(graph: &JobGraph) -> String {
    let mut page = Page(String::new());
    page.line(0, "job", &graph.name);
    page.line(1, "slots needed", graph.slots());
    page.line(1, "output order", order_of(graph));
    page.line(1, "max_parallelism", graph.max_parallelism);
    match &graph.checkpoints {
        None => page.line(1, "checkpoints", "none"),
        Some(checkpoints) => {
            let interval = show_duration(checkpoints.interval);
            let (pause, timeout) = (show_duration(checkpoints.min_pause), show_duration(checkpoints.timeout));
            let (dir, retain, failures) =
                (&checkpoints.dir, checkpoints.retain, checkpoints.tolerable_failures);
            page.line(
                1,
                "checkpoints",
                format!(
                    "interval {interval}, min_pause {pause}, timeout {timeout}, tolerable_failures {failures}, \
                     retain {retain}, dir {dir}"
                ),
            );
        }
    }
    page.line(1, "restart", restart(&graph.restart));
    for vertex in &graph.vertices {
        page.vertex(vertex, &graph.edges);
    }
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, depth: usize, key: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{:depth$}{key}: {value}", "", depth = depth * 2);
    }

    fn vertex(&mut self, vertex: &Vertex, edges: &[Edge]) {
        let _ = writeln!(self.0, "\nchain {}: {}", vertex.id.0, vertex.name);
        self.line(1, "parallelism", vertex.parallelism);
        for edge in edges.iter().filter(|edge| edge.to == vertex.id) {
            let what = match edge.output {
                Output::Records => "records",
                Output::DeadLetters => "dead letters",
            };
            let how = match &edge.partitioning {
                Partitioning::RoundRobin if vertex.parallelism == 1 => "all to the one subtask".to_owned(),
                Partitioning::RoundRobin => "to the subtasks in turn".to_owned(),
                Partitioning::KeyGroups { field } => format!("by the key groups of {field}"),
            };
            self.line(1, "input", format!("{what} of chain {}, {how}", edge.from.0));
        }
        for operator in &vertex.operators {
            match operator {
                OperatorSpec::Source(SourceOptions::File(source)) => self.source(source),
                OperatorSpec::Filter(filter) => self.filter(filter),
                OperatorSpec::Enrich(enrich) => self.enrich(enrich),
                OperatorSpec::Sink(SinkOptions::File(sink)) => self.sink(sink),
            }
        }
    }

    fn source(&mut self, source: &FileSourceOptions) {
        self.line(1, "source", "file");
        self.line(2, "path", &source.path);
        let split = match source.split {
            SplitMode::Auto => "auto",
            SplitMode::File => "file (each file is read from start to end by one subtask)",
            SplitMode::Range => "range (large uncompressed files are cut at line ends)",
        };
        self.line(2, "split", split);
        self.line(2, "event_time", source.event_time.as_deref().unwrap_or("none"));
        self.line(2, "watermark_lag", show_duration(source.watermark_lag));
        let rate = source
            .max_rate
            .map_or_else(|| "none".to_owned(), |rate| format!("{rate} records/s of the whole job"));
        self.line(2, "max_rate", rate);
        self.line(2, "max_record", show_size(source.max_record));
    }

    fn filter(&mut self, filter: &FilterOptions) {
        self.line(1, "filter", &filter.name);
        self.line(2, "if", filter.condition.source().escape_debug());
        self.line(2, "on_failure", on_failure(filter.on_failure));
    }

    fn enrich(&mut self, enrich: &EnrichOptions) {
        self.line(1, "enrich", &enrich.name);
        match (enrich.order, &enrich.key) {
            (Order::Keyed, Some(key)) => {
                self.line(2, "order", "keyed");
                self.line(2, "key", key);
                self.line(2, "max_in_flight_per_key", enrich.max_in_flight_per_key);
            }
            (Order::Unordered, _) => self.line(2, "order", "unordered"),
            (Order::Ordered | Order::Keyed, _) => self.line(2, "order", "ordered"),
        }
        self.line(2, "capacity", format!("{} per subtask", enrich.capacity));
        self.line(2, "timeout", duration_or_none(enrich.timeout));
        self.line(2, "attempt_timeout", duration_or_none(enrich.attempt_timeout));
        self.line(2, "retry", retry(&enrich.retry));
        let on_empty = match enrich.on_empty {
            OnEmpty::Keep => "keep",
            OnEmpty::Drop => "drop",
            OnEmpty::DeadLetter => "dead-letter",
            OnEmpty::Fail => "fail",
        };
        self.line(2, "on_empty", on_empty);
        self.line(2, "on_failure", on_failure(enrich.on_failure));
        self.line(2, "into", enrich.into.as_deref().unwrap_or("none (the answer replaces the record)"));
        self.line(2, "max_answer", show_size(enrich.max_answer));
        match &enrich.call {
            CallOptions::Http(http) => self.http(http),
            CallOptions::Table(table) => {
                self.line(2, "call", "table");
                self.line(3, "file", table.file.display());
                self.line(3, "key", &table.key);
                self.line(3, "by", &table.by);
            }
            CallOptions::Rust(name) => self.line(2, "call", format!("rust {name}")),
        }
    }

    fn http(&mut self, http: &HttpOptions) {
        self.line(2, "call", "http");
        self.line(3, "url", http.url.source());
        self.line(3, "method", &http.method);
        for (name, value) in &http.headers {
            // Headers carry passwords and tokens; a plan is pasted into tickets.
            let shown = if is_secret(name) {
                "(not shown)".to_owned()
            } else {
                value.source().escape_debug().to_string()
            };
            self.line(3, &format!("header {name}"), shown);
        }
        match &http.body {
            Some(body) => self.line(3, "body", body.source().escape_debug()),
            None => self.line(3, "body", "none"),
        }
        self.line(3, "empty", statuses(&http.empty));
        self.line(3, "success", statuses(&http.success));
        self.line(3, "retryable", format!("{} and transport errors", statuses(&http.retryable)));
    }

    fn sink(&mut self, sink: &FileSinkOptions) {
        self.line(1, if sink.dead_letters { "dead letters" } else { "sink" }, "file");
        let form = if sink.parts { "a folder of parts" } else { "a single file" };
        self.line(2, "path", format!("{} ({form})", sink.path.display()));
        self.line(2, "overwrite", sink.overwrite);
    }
}

/// Whether the output has the input's order, and why not.
fn order_of(graph: &JobGraph) -> String {
    if graph.keeps_input_order {
        return "that of the input".to_owned();
    }
    let operators =
        graph.vertices.iter().flat_map(|vertex| vertex.operators.iter().map(move |op| (vertex, op)));
    let mut reasons = Vec::new();
    for (vertex, operator) in operators {
        let is_dead_letters =
            matches!(operator, OperatorSpec::Sink(SinkOptions::File(sink)) if sink.dead_letters);
        if vertex.parallelism > 1 && !is_dead_letters {
            reasons.push(format!("{} has parallelism {}", operator.name(), vertex.parallelism));
        } else if let OperatorSpec::Enrich(enrich) = operator
            && enrich.order != Order::Ordered
        {
            reasons.push(format!("{} is not ordered", enrich.name));
        }
    }
    format!("not that of the input, as {}", reasons.join(", "))
}

fn restart(restart: &RestartStrategy) -> String {
    match restart {
        RestartStrategy::None => "none".to_owned(),
        RestartStrategy::FixedDelay { attempts, delay } => {
            format!("fixed-delay, attempts {attempts}, delay {}", show_duration(*delay))
        }
        RestartStrategy::FailureRate { max_failures, interval, delay } => format!(
            "failure-rate, max_failures {max_failures}, interval {}, delay {}",
            show_duration(*interval),
            show_duration(*delay)
        ),
        RestartStrategy::ExponentialDelay { initial, max, multiplier, jitter, reset_after, attempts } => {
            format!(
                "exponential-delay, initial {}, max {}, multiplier {multiplier}, jitter {jitter}, reset_after {}, attempts {}",
                show_duration(*initial),
                show_duration(*max),
                show_duration(*reset_after),
                attempts.map_or_else(|| "any".to_owned(), |attempts| attempts.to_string())
            )
        }
    }
}

fn retry(retry: &Retry) -> String {
    match retry {
        Retry::None => "none".to_owned(),
        Retry::FixedDelay { max_retries, delay } => {
            format!("fixed-delay, max_retries {max_retries}, delay {}", show_duration(*delay))
        }
        Retry::ExponentialDelay { max_retries, initial, max, multiplier, jitter } => format!(
            "exponential-delay, max_retries {max_retries}, initial {}, max {}, multiplier {multiplier}, jitter {jitter}",
            show_duration(*initial),
            show_duration(*max)
        ),
    }
}

fn on_failure(policy: OnFailure) -> &'static str {
    match policy {
        OnFailure::Fail => "fail",
        OnFailure::Drop => "drop",
        OnFailure::DeadLetter => "dead-letter",
        OnFailure::Keep => "keep",
    }
}

fn duration_or_none(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "none".to_owned(), show_duration)
}

fn statuses(set: &StatusSet) -> String {
    let ranges: Vec<String> = set
        .0
        .iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") })
        .collect();
    if ranges.is_empty() { "none".to_owned() } else { ranges.join(", ") }
}

fn is_secret(header: &str) -> bool {
    let name = header.to_ascii_lowercase();
    ["authorization", "cookie", "token", "key", "secret", "password"].iter().any(|word| name.contains(word))
        && name != "idempotency-key"
}
