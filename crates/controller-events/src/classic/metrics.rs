//! The metrics that Kafka's manager registers, under its names and in its units.

use crate::event::{Event, EventState};
use crate::handle::Handle;
use runtime_core::metrics::{HistogramSnapshot, Observe, Visit};

/// One metric of the original.
#[derive(Clone, PartialEq, Debug)]
pub struct KafkaMetric {
    /// The whole name: `kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs`.
    pub name: String,
    /// Its value.
    pub value: MetricValue,
}

/// A value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MetricValue {
    /// As it stands.
    Gauge(f64),
    /// How many, the least, the mean, the greatest and the 99th of a hundred, in milliseconds.
    Histogram {
        /// How many values.
        count: u64,
        /// The least.
        min: f64,
        /// The mean.
        mean: f64,
        /// The greatest.
        max: f64,
        /// The 99th of a hundred.
        p99: f64,
    },
}

#[derive(Default)]
struct Times {
    queue: HistogramSnapshot,
    states: Vec<(String, HistogramSnapshot)>,
}

impl Visit for Times {
    fn counter(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: u64) {}

    fn gauge(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: f64) {}

    fn histogram(&mut self, name: &str, _: &str, labels: &[(&str, &str)], snapshot: &HistogramSnapshot) {
        match name {
            "event_queue_time_nanoseconds" => self.queue = snapshot.clone(),
            "event_rate_and_time_nanoseconds" => {
                let metric = labels.iter().find(|(label, _)| *label == "metric");
                self.states.extend(metric.map(|(_, metric)| ((*metric).to_owned(), snapshot.clone())));
            }
            _ => {}
        }
    }
}

pub(super) fn of<E: Event>(handle: &Handle<E>) -> Vec<KafkaMetric> {
    let mut times = Times::default();
    handle.observe(&mut times);
    let metric = |kind: &str, name: &str, value| KafkaMetric {
        name: format!("kafka.controller:type={kind},name={name}"),
        value,
    };
    let mut metrics = vec![
        metric("ControllerEventManager", "EventQueueTimeMs", millis(&times.queue)),
        metric("ControllerEventManager", "EventQueueSize", MetricValue::Gauge(handle.len() as f64)),
        metric("KafkaController", "ControllerState", MetricValue::Gauge(f64::from(handle.state().value()))),
    ];
    let states = times.states.iter();
    metrics.extend(states.map(|(name, times)| metric("ControllerStats", name, millis(times))));
    metrics
}

fn millis(snapshot: &HistogramSnapshot) -> MetricValue {
    let millis = |nanos: u64| nanos as f64 / 1e6;
    MetricValue::Histogram {
        count: snapshot.count(),
        min: millis(snapshot.min()),
        mean: snapshot.mean().unwrap_or_default() / 1e6,
        max: millis(snapshot.max()),
        p99: millis(snapshot.quantile(0.99).unwrap_or_default()),
    }
}
