//! Medians, and how much better ours is.

use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Rows(BTreeMap<(String, &'static str), (Unit, Vec<f64>)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    EventsPerSecond,
    Nanos,
}

impl Rows {
    pub(crate) fn rate(&mut self, bench: String, peer: &'static str, value: f64) {
        self.add(bench, peer, Unit::EventsPerSecond, value);
    }

    pub(crate) fn nanos(&mut self, bench: String, peer: &'static str, value: f64) {
        self.add(bench, peer, Unit::Nanos, value);
    }

    fn add(&mut self, bench: String, peer: &'static str, unit: Unit, value: f64) {
        self.0.entry((bench, peer)).or_insert((unit, Vec::new())).1.push(value);
    }

    /// One JSON object a line. The ratio is above 1 where ours is better.
    pub(crate) fn print(&self) {
        for ((bench, peer), (unit, values)) in &self.0 {
            let value = median(values);
            let ours = self.0.get(&(bench.clone(), "ours")).map(|(_, values)| median(values));
            let ratio = ours.map_or(1.0, |ours| match unit {
                Unit::EventsPerSecond => ours / value,
                Unit::Nanos => value / ours,
            });
            let unit = match unit {
                Unit::EventsPerSecond => "events/s",
                Unit::Nanos => "ns",
            };
            let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(l, m), v| (l.min(*v), m.max(*v)));
            println!(
                "{{\"bench\":\"controller-events/{bench}\",\"peer\":\"{peer}\",\"value\":{value:.1},\"unit\":\"{unit}\",\
                 \"min\":{least:.1},\"max\":{most:.1},\"runs\":{},\"ratio\":{ratio:.2}}}",
                values.len()
            );
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
