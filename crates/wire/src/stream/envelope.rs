//! What the messages of a stream have in common: a number, and that they can be an acknowledgement.

use crate::v1;

/// A message of a stream between roles.
pub trait Envelope: Clone + Send + 'static {
    /// The message's number; 0: it has none (greetings and acknowledgements), is not kept and not sent again.
    fn number(&self) -> u64;

    /// Gives the message its number.
    fn set_number(&mut self, number: u64);

    /// The acknowledgement of everything up to this number.
    fn ack(number: u64) -> Self;

    /// Up to which number the message acknowledges, if it is an acknowledgement.
    fn acknowledged(&self) -> Option<u64>;
}

macro_rules! envelopes {
    ($($envelope:ident in $module:ident;)*) => {
        $(impl Envelope for v1::$envelope {
            fn number(&self) -> u64 {
                self.number
            }

            fn set_number(&mut self, number: u64) {
                self.number = number;
            }

            fn ack(number: u64) -> Self {
                let message = Some(v1::$module::Message::Ack(v1::StreamAck { number }));
                Self { number: 0, message }
            }

            fn acknowledged(&self) -> Option<u64> {
                match &self.message {
                    Some(v1::$module::Message::Ack(ack)) => Some(ack.number),
                    _ => None,
                }
            }
        })*
    };
}

envelopes! {
    TaskExecutorToResourceManager in task_executor_to_resource_manager;
    ResourceManagerToTaskExecutor in resource_manager_to_task_executor;
    JobMasterToResourceManager in job_master_to_resource_manager;
    ResourceManagerToJobMaster in resource_manager_to_job_master;
    TaskExecutorToJobMaster in task_executor_to_job_master;
    JobMasterToTaskExecutor in job_master_to_task_executor;
}
