//! Where asynchronous steps are chained.

use super::{job, shape, step};

/// Flink does not chain an asynchronous operator to a source with a thread of its own, whose emission it could not hold
/// back. There are none of those here: every source reads splits when it is asked to, like Flink's newer ones.
#[test]
fn g09_an_asynchronous_step_is_chained_to_a_source_a_filter_and_another_step() {
    let names = |steps: &str| shape(&job("", steps, "/out/x.jsonl")).0;
    assert_eq!(names(&step("e", "")), ["source: a.jsonl -> e -> sink x1"]);
    let after_filter = format!("{{filter: a > 1}}, {}", step("e", "order: unordered"));
    assert_eq!(names(&after_filter), ["source: a.jsonl -> filter-1 -> e -> sink x1"]);
    let after_another = format!("{}, {}", step("e", ""), step("f", "order: unordered"));
    assert_eq!(names(&after_another), ["source: a.jsonl -> e -> f -> sink x1"]);
}
