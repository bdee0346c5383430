//! A filter step.

use std::panic::{AssertUnwindSafe, catch_unwind};

use job::options::FilterOptions;
use runtime_core::StreamElement;

use super::Flow;
use super::context::{Context, Rejected};
use super::policy::on_failure;
use crate::task::TaskError;

/// Lets records pass for which its condition holds, and every control element.
pub(crate) struct FilterStep {
    options: FilterOptions,
}

impl FilterStep {
    pub(crate) fn new(options: FilterOptions) -> Self {
        Self { options }
    }

    /// The element, if it passes.
    pub(crate) fn apply(&self, element: Flow, cx: &mut Context) -> Result<Option<Flow>, TaskError> {
        let StreamElement::Record(record) = &element else { return Ok(Some(element)) };
        let verdict = catch_unwind(AssertUnwindSafe(|| self.options.condition.evaluate(&record.value)));
        let error = match verdict {
            Ok(Ok(true)) => return Ok(Some(element)),
            Ok(Ok(false)) => {
                cx.figures.filtered.add(1);
                return Ok(None);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the evaluation of the condition panicked".to_owned(),
        };
        let rejected = Rejected::without_attempts(&record.value, &self.options.name, &error);
        // A condition gives the same for the same record however often it is asked.
        let kept = on_failure(self.options.on_failure, &rejected, true, cx)?;
        Ok(kept.then_some(element))
    }
}
