//! From [`Observe`] sources to OpenMetrics text.
//!
//! Sources show their metrics one by one; the format wants each name once with all its label sets. So a scrape gathers
//! first and writes then. Distributions have up to 976 buckets, of which a scrape shows the powers of four: enough for
//! a heat map, and few enough for a time series database.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime_core::metrics::{HistogramSnapshot, Observe, Visit};

use super::process::ThisProcess;

/// Every name of ours begins with it; names of a process in general begin with `process_`.
const PREFIX: &str = "tidegate_";

/// What `/metrics` shows. Clones are the same.
#[derive(Clone, Default)]
pub struct MetricSources {
    sources: Arc<RwLock<Vec<Source>>>,
}

#[derive(Clone)]
enum Source {
    Always(Arc<dyn Observe>),
    WhileAlive(Weak<dyn Observe>),
}

impl MetricSources {
    /// Shows a source for the life of the process.
    pub fn add(&self, source: Arc<dyn Observe>) {
        self.push(Source::Always(source));
    }

    /// Shows a source as long as somebody else holds it: a job, a task, a peer.
    pub fn add_while_alive(&self, source: Weak<dyn Observe>) {
        self.push(Source::WhileAlive(source));
    }

    /// The page, in OpenMetrics text.
    ///
    /// # Errors
    /// The encoder's; a text in memory has none.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut page = String::new();
        text::encode(&mut page, &registry)?;
        Ok(page)
    }

    fn push(&self, source: Source) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| !matches!(source, Source::WhileAlive(weak) if weak.strong_count() == 0));
        sources.push(source);
    }

    fn gather(&self) -> Gathered {
        // The list is copied, so that a source that adds one while it is asked does not wait for itself.
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut gathered = Gathered::default();
        ThisProcess.observe(&mut gathered);
        for source in sources {
            match source {
                Source::Always(source) => source.observe(&mut gathered),
                Source::WhileAlive(weak) => {
                    if let Some(source) = weak.upgrade() {
                        source.observe(&mut gathered);
                    }
                }
            }
        }
        gathered
    }
}

impl fmt::Debug for MetricSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricSources").finish_non_exhaustive()
    }
}

impl Collector for MetricSources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, family) in &self.gather().families {
            let mut metric = encoder.encode_descriptor(name, &family.help, None, family.kind)?;
            for (labels, value) in &family.samples {
                if labels.is_empty() {
                    value.encode(&mut metric)?;
                } else {
                    value.encode(&mut metric.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

type Labels = Vec<(String, String)>;

#[derive(Default)]
struct Gathered {
    families: BTreeMap<String, Family>,
}

struct Family {
    help: String,
    kind: MetricType,
    samples: BTreeMap<Labels, Value>,
}

enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(HistogramSnapshot),
}

impl Gathered {
    /// Of a name with another kind, and of equal label sets, the first stays: a page with a contradiction is refused
    /// whole by those who read it.
    fn put(&mut self, name: &str, help: &str, labels: &[(&str, &str)], kind: MetricType, value: Value) {
        let name = full_name(name, kind);
        let labels = labels.iter().map(|(name, value)| (word(name), (*value).to_owned())).collect();
        let family = self.families.entry(name).or_insert_with(|| Family {
            help: escape(help),
            kind,
            samples: BTreeMap::new(),
        });
        if family.kind.as_str() == kind.as_str()
            && let Entry::Vacant(vacant) = family.samples.entry(labels)
        {
            vacant.insert(value);
        }
    }
}

impl Visit for Gathered {
    fn counter(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: u64) {
        self.put(name, help, labels, MetricType::Counter, Value::Counter(value));
    }

    fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        self.put(name, help, labels, MetricType::Gauge, Value::Gauge(value));
    }

    fn histogram(&mut self, name: &str, help: &str, labels: &[(&str, &str)], snapshot: &HistogramSnapshot) {
        self.put(name, help, labels, MetricType::Histogram, Value::Histogram(snapshot.clone()));
    }
}

impl Value {
    fn encode(&self, metric: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Self::Counter(value) => metric.encode_counter::<NoLabelSet, _, u64>(value, None),
            Self::Gauge(value) => metric.encode_gauge(value),
            Self::Histogram(snapshot) => metric.encode_histogram::<NoLabelSet>(
                snapshot.sum() as f64,
                snapshot.count(),
                &powers_of_four(snapshot),
                None,
            ),
        }
    }
}

/// Bounds and counts (not summed up) of the powers of four that the values reach, and the rest.
fn powers_of_four(snapshot: &HistogramSnapshot) -> Vec<(f64, u64)> {
    let mut buckets: Vec<(f64, u64)> = (0..32).map(|power| ((1_u64 << (2 * power)) as f64, 0)).collect();
    buckets.push((f64::INFINITY, 0));
    let mut last = 0;
    for (greatest, count) in snapshot.buckets() {
        let place = buckets.iter().position(|(bound, _)| greatest as f64 <= *bound).unwrap_or(0);
        if let Some((_, counted)) = buckets.get_mut(place) {
            *counted += count;
        }
        last = last.max(place);
    }
    let rest = buckets.len() - 1;
    buckets
        .into_iter()
        .enumerate()
        .filter(|(place, _)| *place <= last || *place == rest)
        .map(|(_, b)| b)
        .collect()
}

fn full_name(name: &str, kind: MetricType) -> String {
    let name = word(name);
    let name = match kind {
        MetricType::Counter => name.strip_suffix("_total").unwrap_or(&name),
        _ => name.as_str(),
    };
    if name.starts_with(PREFIX) || name.starts_with("process_") {
        name.to_owned()
    } else {
        format!("{PREFIX}{name}")
    }
}

/// Characters that no name may have become `_`.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// The encoder escapes the values of labels, but not help texts.
fn escape(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::metrics::Histogram;

    struct Two(&'static str);

    impl Observe for Two {
        fn observe(&self, visit: &mut dyn Visit) {
            visit.counter("calls", "Calls\nbegun.", &[("peer", self.0)], 3);
            visit.gauge("waiting", "Records that wait.", &[], 1.5);
        }
    }

    fn page(sources: &MetricSources) -> Vec<String> {
        let page = sources.encode().unwrap();
        page.lines().filter(|line| !line.contains("process_")).map(str::to_owned).collect()
    }

    #[test]
    fn each_name_stands_once_with_all_its_label_sets() {
        let sources = MetricSources::default();
        sources.add(Arc::new(Two("a")));
        sources.add(Arc::new(Two("b\"\\\n")));
        assert_eq!(
            page(&sources),
            [
                "# HELP tidegate_calls Calls\\nbegun.",
                "# TYPE tidegate_calls counter",
                "tidegate_calls_total{peer=\"a\"} 3",
                "tidegate_calls_total{peer=\"b\\\"\\\\\\n\"} 3",
                "# HELP tidegate_waiting Records that wait.",
                "# TYPE tidegate_waiting gauge",
                "tidegate_waiting 1.5",
                "# EOF",
            ]
        );
    }

    #[test]
    fn a_source_that_is_gone_is_shown_no_more() {
        let sources = MetricSources::default();
        let job: Arc<dyn Observe> = Arc::new(Two("a"));
        sources.add_while_alive(Arc::downgrade(&job));
        assert!(page(&sources).len() > 1);
        drop(job);
        assert_eq!(page(&sources), ["# EOF"]);
    }

    #[test]
    fn a_name_of_two_kinds_keeps_the_first() {
        let mut gathered = Gathered::default();
        gathered.counter("x", "", &[], 1);
        gathered.gauge("x", "", &[("a", "b")], 2.0);
        assert_eq!(gathered.families.len(), 1);
        assert_eq!(gathered.families["tidegate_x"].samples.len(), 1);
    }

    #[test]
    fn buckets_of_a_distribution_add_up_to_its_count() {
        let histogram = Histogram::new();
        for value in [0, 1, 3, 5, 70, 5_000, u64::MAX] {
            histogram.record(value);
        }
        let buckets = powers_of_four(&histogram.snapshot());
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 7);
        assert_eq!(buckets.last().unwrap().0, f64::INFINITY);
        assert_eq!(buckets[..4], [(1.0, 2), (4.0, 1), (16.0, 1), (64.0, 0)]);
        assert_eq!(powers_of_four(&HistogramSnapshot::default()), [(1.0, 0), (f64::INFINITY, 0)]);
    }

    #[test]
    fn the_page_shows_the_memory_of_the_process() {
        assert!(MetricSources::default().encode().unwrap().contains("\nprocess_resident_memory_bytes "));
    }
}
