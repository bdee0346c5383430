//! Offering a job its slots.

use std::sync::Arc;
use std::time::Duration;

use controller_events::{Handle, Tag, When};
use runtime_core::{AllocationId, JobId};
use wire::convert::WireId;
use wire::{RpcError, RpcErrorKind, v1};

use super::TaskExecutorProcessor;
use crate::event::{Life, OfferNumber, TeEvent};

/// How long an offer may take before it is made again: several times within the slot timeout.
const OFFER_TIMEOUT: Duration = Duration::from_secs(2);
/// Before an offer is repeated that the job master could not take.
const OFFER_PAUSE: Duration = Duration::from_millis(100);

impl TaskExecutorProcessor {
    /// Offers all slots that are promised to a job and not yet taken, if its master is connected.
    pub(super) fn offer_slots(&mut self, job_id: JobId, events: &Handle<TeEvent>) {
        let offers = self.slots.to_offer(job_id);
        let Some(job) = self.jobs.get_mut(&job_id).filter(|job| job.is_connected()) else { return };
        let Some(established) = job.established.filter(|_| !offers.is_empty()) else { return };
        job.offers += 1;
        let offer =
            |(id, index): &(AllocationId, u32)| v1::SlotOffer { allocation_id: id.to_wire(), index: *index };
        let request = v1::OfferSlotsRequest {
            fence: self.shared.fence(established.epoch),
            job_id: job_id.to_wire(),
            resource_id: self.shared.resource_id.to_string(),
            offers: offers.iter().map(offer).collect(),
        };
        let (gateway, events) = (Arc::clone(&job.gateway), events.clone());
        let (life, number) = (job.life, job.offers);
        self.shared.runtime.spawn(async move {
            let answer = tokio::time::timeout(OFFER_TIMEOUT, gateway.offer_slots(request)).await;
            let late = |_| Err(RpcError::deadline(format!("no answer to an offer within {OFFER_TIMEOUT:?}")));
            let offered = offers.into_iter().map(|(id, _)| id).collect();
            let event = TeEvent::Offered(job_id, life, number, offered, answer.unwrap_or_else(late));
            if events.put(event).is_err() {
                tracing::debug!(job = %job_id, "an offer was answered after the loop had ended");
            }
        });
    }

    /// Of several offers only the newest one's answer counts (FLINK-21859): it names all slots that were still open.
    pub(super) fn offered(
        &mut self,
        job_id: JobId,
        life: Life,
        number: OfferNumber,
        offered: &[AllocationId],
        result: Result<v1::OfferSlotsReply, RpcError>,
        events: &Handle<TeEvent>,
    ) {
        let current = |job: &&super::job::Job| job.life == life && job.offers == number;
        if self.jobs.get(&job_id).filter(current).is_none() {
            return;
        }
        match result {
            Ok(reply) => self.answered(job_id, offered, &reply),
            Err(error) if error.kind == RpcErrorKind::Deadline => {
                tracing::info!(job = %job_id, %error, "offering slots again");
                self.offer_slots(job_id, events);
            }
            Err(error) if may_pass(error.kind) => {
                tracing::info!(job = %job_id, %error, "slots could not be offered yet");
                let tag = Tag::keyed("offer-again", u128::from_be_bytes(job_id.to_bytes()));
                let at = self.now() + OFFER_PAUSE;
                if events.schedule(Some(tag), When::Earliest(at), TeEvent::OfferAgain(job_id)).is_err() {
                    tracing::debug!(job = %job_id, "no timer: the loop has ended");
                }
            }
            Err(error) => {
                tracing::warn!(job = %job_id, %error, "the job master does not take slots; they are freed");
                self.release_unless_taken(job_id, offered, &error.to_string());
            }
        }
    }

    fn answered(&mut self, job_id: JobId, offered: &[AllocationId], reply: &v1::OfferSlotsReply) {
        let now = self.now();
        let accepted: Vec<AllocationId> =
            reply.accepted.iter().filter_map(|id| AllocationId::from_wire(id, "accepted").ok()).collect();
        for allocation in &accepted {
            // A slot that went back meanwhile is no longer there; the next heartbeat tells the job master.
            if self.slots.activate(job_id, *allocation).is_ok() {
                // Also where it was offered before: to a job master in another life, which has begun to hold it now.
                self.activated.insert(*allocation, now);
            }
        }
        let rejected: Vec<AllocationId> =
            offered.iter().filter(|id| !accepted.contains(id)).copied().collect();
        self.release_unless_taken(job_id, &rejected, "the job does not need its slot");
    }

    /// Frees those of the slots that the job has not taken meanwhile by sending a task.
    fn release_unless_taken(&mut self, job_id: JobId, allocations: &[AllocationId], cause: &str) {
        let open: Vec<AllocationId> = self.slots.to_offer(job_id).into_iter().map(|(id, _)| id).collect();
        for allocation in allocations.iter().filter(|id| open.contains(id)) {
            self.release(*allocation, cause);
        }
    }
}

/// Whether the same offer may be taken a little later.
const fn may_pass(kind: RpcErrorKind) -> bool {
    matches!(kind, RpcErrorKind::Unreachable | RpcErrorKind::NotStarted | RpcErrorKind::Overloaded)
}
