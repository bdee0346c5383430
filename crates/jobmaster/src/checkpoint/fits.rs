//! Whether a job may begin with a savepoint of another: asked before anything is accepted.
//!
//! What may differ: parallelism, order, capacity, budgets, retries, policies, calls, rates, the outputs, steps that held
//! nothing. What may not is what the records in the savepoint depend on.

use std::collections::BTreeSet;

use job::graph::{JobGraph, Vertex};

/// Why a job cannot begin with a savepoint, each reason with the way out. `held` names the steps of which the savepoint
/// holds records.
#[must_use]
pub fn misfits(old: &JobGraph, new: &JobGraph, held: &BTreeSet<String>) -> Vec<String> {
    let mut misfits = Vec::new();
    if old.max_parallelism != new.max_parallelism {
        misfits.push(format!(
            "max_parallelism: {} does not fit the savepoint, which has {}: the number of key groups is fixed by a job's \
             savepoints; write `max_parallelism: {}`",
            new.max_parallelism, old.max_parallelism, old.max_parallelism
        ));
    }
    if let (Some(before), Some(now)) = (old.source(), new.source())
        && before.path != now.path
    {
        misfits.push(format!(
            "source.file.path: `{}` does not fit the savepoint, which has positions in `{}`; name that, or start \
             a new job without the savepoint",
            now.path, before.path
        ));
    }
    let (before, now) = (steps(old), steps(new));
    for step in held.iter().filter(|step| !now.contains(&step.as_str())) {
        misfits.push(format!(
            "steps: the savepoint holds records in flight in the step `{step}`, which the job file does not have; keep the \
             step under that name, or stop the job with `tidegate stop --drain`, which leaves nothing in flight"
        ));
    }
    let kept: Vec<&&str> = before.iter().filter(|step| now.contains(step)).collect();
    let again: Vec<&&str> = now.iter().filter(|step| before.contains(step)).collect();
    if kept != again && !held.is_empty() {
        misfits.push(format!(
            "steps: they stand in another order than in the savepoint ({}), whose records in flight have been through \
             some of them; keep the order, or stop the job with `tidegate stop --drain`",
            kept.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
        ));
    }
    misfits
}

fn steps(graph: &JobGraph) -> Vec<&str> {
    graph.vertices.iter().flat_map(Vertex::steps).map(|step| step.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use job::file::JobFile;

    use super::*;

    fn graph(more: &str, path: &str, steps: &[&str]) -> JobGraph {
        let step = |name: &&str| {
            format!(
                "  - enrich: {{name: {name}, into: {name}, call: {{table: {{file: /t.jsonl, key: k, by: k}}}}}}\n"
            )
        };
        let steps: String = steps.iter().map(step).collect();
        let text = format!(
            "name: j\n{more}source: {{file: {{path: {path}}}}}\nsteps:\n{steps}sink: {{file: {{path: /out.jsonl}}}}\n"
        );
        job::plan::plan(&JobFile::parse(&text, "j.yaml").unwrap()).unwrap()
    }

    #[test]
    fn what_the_records_in_a_savepoint_depend_on_may_not_differ_and_all_else_may() {
        let old = graph("", "/in.jsonl", &["a", "b"]);
        let held = BTreeSet::from(["b".to_owned()]);
        for (more, path, steps, reason) in [
            ("parallelism: 3\n", "/in.jsonl", &["a", "b"][..], None),
            ("", "/in.jsonl", &["b"], None),
            ("", "/in.jsonl", &["a", "c", "b"], None),
            ("max_parallelism: 64\n", "/in.jsonl", &["a", "b"], Some("write `max_parallelism: 128`")),
            ("", "/other.jsonl", &["a", "b"], Some("has positions in `/in.jsonl`")),
            ("", "/in.jsonl", &["a"], Some("in flight in the step `b`")),
            ("", "/in.jsonl", &["b", "a"], Some("another order")),
        ] {
            let found = misfits(&old, &graph(more, path, steps), &held);
            match reason {
                None => assert_eq!(found, Vec::<String>::new()),
                Some(reason) => assert!(matches!(&found[..], [one] if one.contains(reason)), "{found:?}"),
            }
        }
        let drained = BTreeSet::new();
        assert_eq!(misfits(&old, &graph("", "/in.jsonl", &["b", "c"]), &drained), Vec::<String>::new());
    }
}
