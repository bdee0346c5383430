//! `tidegate explain`

use clap::Args;
use job::graph::{Edge, JobGraph, Output as Leaving, Partitioning};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::job_file::JobFileArgs;
use crate::output::Output;

/// Print how a job will run: chains, order, and every option with its default
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tidegate explain job.yaml --set steps.customer.order=unordered")]
pub(super) struct Explain {
    #[command(flatten)]
    job: JobFileArgs,
}

impl Explain {
    pub(super) fn execute(self, output: Output) -> Result<(), Failure> {
        let graph = self.job.plan()?;
        if output.json {
            output.document(&document(&graph))
        } else {
            output.text(&job::plan::explain(&graph))
        }
    }
}

/// The shape of the plan for programs; the options are in the text.
fn document(graph: &JobGraph) -> Value {
    let chains: Vec<Value> = graph
        .vertices
        .iter()
        .map(|vertex| {
            let inputs = graph.edges.iter().filter(|edge| edge.to == vertex.id).map(input);
            json!({
                "id": vertex.id.0,
                "name": vertex.name,
                "parallelism": vertex.parallelism,
                "operators": vertex.operators.iter().map(|op| op.name()).collect::<Vec<_>>(),
                "inputs": inputs.collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "name": graph.name,
        "slots": graph.slots(),
        "max_parallelism": graph.max_parallelism,
        "keeps_input_order": graph.keeps_input_order,
        "chains": chains,
        "plan": job::plan::explain(graph),
    })
}

fn input(edge: &Edge) -> Value {
    let output = match edge.output {
        Leaving::Records => "records",
        Leaving::DeadLetters => "dead_letters",
    };
    let key = match &edge.partitioning {
        Partitioning::RoundRobin => None,
        Partitioning::KeyGroups { field } => Some(field),
    };
    json!({ "chain": edge.from.0, "output": output, "key": key })
}
