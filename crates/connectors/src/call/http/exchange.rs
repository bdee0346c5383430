//! One request and its response.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use reqwest::{Client, Request, Response, Url};

use super::{Classes, retry_after};
use crate::call::{Answer, CallFailure, CallOutcome};

/// How much of a body that is of no use is read so that its connection can be used again.
const DRAINED: usize = 64 << 10;

/// How much of an error's body is worth repeating, in characters.
const EXCERPT: usize = 200;

pub(super) async fn exchange(client: Client, request: Request, classes: Arc<Classes>) -> CallOutcome {
    let what = Described { method: request.method().to_string(), url: without_password(request.url()) };
    let response = client.execute(request).await.map_err(|error| what.transport(error))?;
    let status = response.status();
    // 204 is both a success and empty: a set that names what is empty says more.
    if classes.empty.contains(status.as_u16()) {
        drain(response).await;
        return Ok(Answer::Empty);
    }
    if classes.success.contains(status.as_u16()) {
        let body = read_answer(response, &classes, &what).await?;
        return classes.rules.check(&body).map_err(|failure| what.about(failure));
    }
    let retryable = classes.retryable.contains(status.as_u16());
    let retry_after = if retryable { retry_after::read(response.headers()) } else { None };
    let body = drain(response).await;
    let excerpt: String = String::from_utf8_lossy(&body).trim().chars().take(EXCERPT).collect();
    let separator = if excerpt.is_empty() { "" } else { ": " };
    let message = format!("{} {} was answered {status}{separator}{excerpt}", what.method, what.url);
    Err(CallFailure { message, retryable, retry_after })
}

/// What was asked, for messages.
struct Described {
    method: String,
    url: Url,
}

impl Described {
    /// Nothing is known of what the service did: another attempt carries the same idempotency key.
    fn transport(&self, error: reqwest::Error) -> CallFailure {
        let causes = with_causes(&error.without_url());
        CallFailure::retryable(format!("{} {} failed: {causes}", self.method, self.url))
    }

    fn about(&self, failure: CallFailure) -> CallFailure {
        CallFailure { message: format!("{} {}: {}", self.method, self.url, failure.message), ..failure }
    }
}

/// The body, as long as it is within the limit; it is never held beyond it.
async fn read_answer(
    mut response: Response,
    classes: &Classes,
    what: &Described,
) -> Result<Bytes, CallFailure> {
    let within = |length| classes.rules.check_length(length).map_err(|failure| what.about(failure));
    within(response.content_length().unwrap_or(0))?;
    let Some(first) = response.chunk().await.map_err(|error| what.transport(error))? else {
        return Ok(Bytes::new());
    };
    within(first.len() as u64)?;
    let Some(second) = response.chunk().await.map_err(|error| what.transport(error))? else {
        return Ok(first);
    };
    let mut body = BytesMut::from(first.as_ref());
    let mut next = Some(second);
    while let Some(chunk) = next {
        within((body.len() + chunk.len()) as u64)?;
        body.extend_from_slice(&chunk);
        next = response.chunk().await.map_err(|error| what.transport(error))?;
    }
    Ok(body.freeze())
}

/// Reads a body that says nothing new to its end, if that is near, and gives its beginning. That it cannot be read
/// changes nothing.
async fn drain(mut response: Response) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > DRAINED {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body.freeze()
}

/// An error and what caused it, on one line.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

fn without_password(url: &Url) -> Url {
    let mut url = url.clone();
    if url.password().is_some() {
        // It can only fail for URLs that cannot have one.
        let _ = url.set_password(Some("..."));
    }
    url
}
