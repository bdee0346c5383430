//! Doing what was drawn, and undoing it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::plan::{Drawn, Fault};
use super::{LONG, node};
use crate::patience::Patience;
use crate::processes::{Cut, Network, ProcessCluster, Role, Signal};

/// Between two looks at the job's end.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// Faults that were begun, and those of them that last.
pub(super) struct Deeds<'a> {
    network: Option<&'a Network>,
    lasting: Vec<Lasting>,
    /// What was done, with the moments.
    pub(super) done: Vec<(Duration, String)>,
}

struct Lasting {
    until: Duration,
    fault: Fault,
    _cuts: Vec<Cut>,
}

impl<'a> Deeds<'a> {
    pub(super) const fn new(network: Option<&'a Network>) -> Self {
        Self { network, lasting: Vec::new(), done: Vec::new() }
    }

    /// Does everything at its moment. Ends before, if the job does.
    pub(super) fn follow(
        &mut self,
        drawn: &[Drawn],
        begun: &Patience,
        cluster: &mut ProcessCluster,
        id: &str,
        tell: &mut dyn FnMut(&str),
    ) -> anyhow::Result<()> {
        for next in drawn {
            while let Some(due) =
                self.lasting.iter().map(|lasting| lasting.until).filter(|due| *due <= next.at).min()
            {
                if self.wait(due, begun, cluster, id)? {
                    return Ok(());
                }
                self.undo(due, begun, cluster, tell)?;
            }
            if self.wait(next.at, begun, cluster, id)? {
                return Ok(());
            }
            self.begin(next, begun, cluster, tell)?;
        }
        Ok(())
    }

    /// Undoes what lasts, at once, and waits until all are well.
    pub(super) fn undo_all(
        &mut self,
        begun: &Patience,
        cluster: &mut ProcessCluster,
        tell: &mut dyn FnMut(&str),
    ) -> anyhow::Result<()> {
        self.undo(Duration::MAX, begun, cluster, tell)?;
        for role in cluster.roles() {
            look_after(cluster, role)?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        drawn: &Drawn,
        begun: &Patience,
        cluster: &mut ProcessCluster,
        tell: &mut dyn FnMut(&str),
    ) -> anyhow::Result<()> {
        let mut cuts = Vec::new();
        match drawn.fault {
            Fault::Kill { role, .. } => cluster.kill(role)?,
            Fault::Stop { role, .. } => cluster.process(role)?.signal(Signal::Stop)?,
            Fault::Cut { from, to, both_ways, .. } => {
                // Told before, why not.
                let Some(network) = self.network else { return Ok(()) };
                cuts.push(network.cut(node(from), node(to))?);
                if both_ways {
                    cuts.push(network.cut(node(to), node(from))?);
                }
            }
        }
        self.note(begun, drawn.fault.to_string(), tell);
        let until = begun.elapsed() + drawn.fault.length();
        self.lasting.push(Lasting { until, fault: drawn.fault, _cuts: cuts });
        Ok(())
    }

    fn undo(
        &mut self,
        due: Duration,
        begun: &Patience,
        cluster: &mut ProcessCluster,
        tell: &mut dyn FnMut(&str),
    ) -> anyhow::Result<()> {
        let (over, lasting) =
            std::mem::take(&mut self.lasting).into_iter().partition(|lasting| lasting.until <= due);
        self.lasting = lasting;
        for Lasting { fault, _cuts: cuts, .. } in over {
            let what = match fault {
                Fault::Kill { role, .. } => {
                    cluster.launch(role)?;
                    format!("{role} is started again")
                }
                Fault::Stop { role, .. } => {
                    cluster.process(role)?.signal(Signal::Continue)?;
                    format!("{role} goes on")
                }
                Fault::Cut { from, to, .. } => format!("{from} and {to} are joined again"),
            };
            drop(cuts);
            self.note(begun, what, tell);
        }
        Ok(())
    }

    fn note(&mut self, begun: &Patience, what: String, tell: &mut dyn FnMut(&str)) {
        let at = begun.elapsed();
        tell(&format!("{:8.2} s  {what}", at.as_secs_f64()));
        self.done.push((at, what));
    }

    /// Waits until a moment, and looks after the processes meanwhile. Answers whether the job has ended.
    fn wait(
        &self,
        until: Duration,
        begun: &Patience,
        cluster: &mut ProcessCluster,
        id: &str,
    ) -> anyhow::Result<bool> {
        while begun.elapsed() < until {
            let pause = Patience::of(LOOK.min(until.saturating_sub(begun.elapsed())));
            pause.pass();
            for role in cluster.roles() {
                if cluster.is_started(role) {
                    is_alive(cluster, role)?;
                }
            }
            // One that stands still or is away does not answer.
            let master_is_well = !self.lasting.iter().any(|lasting| {
                matches!(lasting.fault, Fault::Kill { role, .. } | Fault::Stop { role, .. } if role == Role::JobMaster)
            });
            if master_is_well && ended(cluster, id).is_ok_and(|ended| ended.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Waits until a process is ready and answers.
fn look_after(cluster: &mut ProcessCluster, role: Role) -> anyhow::Result<()> {
    if !cluster.is_ready(role) {
        cluster.await_ready(role).with_context(|| format!("{role} after it was killed"))?;
    }
    if role == Role::JobMaster {
        cluster.await_answer("/overview", LONG, |_| true)?;
    }
    is_alive(cluster, role)
}

fn is_alive(cluster: &mut ProcessCluster, role: Role) -> anyhow::Result<()> {
    let process = cluster.process(role)?;
    let alive = process.is_alive()?;
    ensure!(alive, "{role} has ended by itself; it logged:\n{}", last_lines(&process.log()));
    Ok(())
}

/// The final figures, if the job has ended.
pub(super) fn ended(cluster: &ProcessCluster, id: &str) -> anyhow::Result<Option<Value>> {
    let answer = cluster.get(&format!("/jobs/{id}/execution-result"))?;
    let status = answer.pointer("/status/id").and_then(Value::as_str);
    Ok(answer.get("job-execution-result").filter(|_| status == Some("COMPLETED")).cloned())
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}
