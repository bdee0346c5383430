//! The `http` call: a request made of templates, a response sorted by its status.
//!
//! Redirects are not followed and proxies of the environment not used: what a job asks is what its file says. Whoever
//! needs either puts the final address into the file.

mod client;
mod exchange;
mod names;
mod retry_after;

use std::sync::Arc;

use futures::FutureExt;
use job::options::{HttpOptions, StatusSet};
use job::template::{Escape, Rendered, Template, TemplateError};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request, Url};

use super::answer::AnswerRules;
use super::{Answer, Call, CallFailure, CallRequest, Called};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Asks an HTTP service.
pub(super) struct HttpCall {
    client: Client,
    method: Method,
    url: Template,
    headers: Vec<(HeaderName, Template)>,
    body: Option<Template>,
    classes: Arc<Classes>,
}

/// What a response means.
struct Classes {
    success: StatusSet,
    empty: StatusSet,
    retryable: StatusSet,
    rules: AnswerRules,
}

/// Why there is nothing to send.
enum NoRequest {
    /// A field that the request needs is missing or null.
    Empty,
    /// The record does not fit into the request.
    Unfit(String),
}

impl From<TemplateError> for NoRequest {
    fn from(error: TemplateError) -> Self {
        Self::Unfit(error.to_string())
    }
}

impl HttpCall {
    pub(super) fn build(options: &HttpOptions, rules: AnswerRules) -> Result<Self, String> {
        let method = Method::from_bytes(options.method.as_bytes())
            .map_err(|_| format!("`{}` is no HTTP method", options.method))?;
        parse_url(&options.url.with_each("0"))?;
        let headers = options.headers.iter().map(|(name, template)| {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            parsed
                .map(|parsed| (parsed, template.clone()))
                .map_err(|_| format!("`{name}` is no name of a header"))
        });
        Ok(Self {
            client: client::shared()?,
            method,
            url: options.url.clone(),
            headers: headers.collect::<Result<_, _>>()?,
            body: options.body.clone(),
            classes: Arc::new(Classes {
                success: options.success.clone(),
                empty: options.empty.clone(),
                retryable: options.retryable.clone(),
                rules,
            }),
        })
    }

    fn request(&self, call: &CallRequest) -> Result<Request, NoRequest> {
        let fill = |template: &Template, escape| match template.render(&call.record, escape)? {
            Rendered::Text(text) => Ok(text),
            Rendered::Empty => Err(NoRequest::Empty),
        };
        let url = parse_url(&fill(&self.url, Escape::Url)?).map_err(NoRequest::Unfit)?;
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        headers.insert(IDEMPOTENCY_KEY.clone(), header(&IDEMPOTENCY_KEY, call.idempotency_key.to_string())?);
        let body = self.body.as_ref().map(|template| fill(template, Escape::None)).transpose()?;
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, template) in &self.headers {
            headers.insert(name.clone(), header(name, fill(template, Escape::None)?)?);
        }
        // The builder, and not the request itself, makes a header of the user and password in a URL.
        let mut request = self.client.request(self.method.clone(), url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.build().map_err(|error| NoRequest::Unfit(exchange::with_causes(&error.without_url())))
    }
}

impl Call for HttpCall {
    fn call(&self, request: &CallRequest) -> Called {
        match self.request(request) {
            Ok(request) => {
                let classes = Arc::clone(&self.classes);
                Called::Pending(exchange::exchange(self.client.clone(), request, classes).boxed())
            }
            Err(NoRequest::Empty) => Called::NotMade(Ok(Answer::Empty)),
            Err(NoRequest::Unfit(reason)) => {
                let at = self.url.source();
                Called::NotMade(Err(CallFailure::terminal(format!(
                    "no request to `{at}` was made: {reason}"
                ))))
            }
        }
    }
}

fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{text}` is no URL of http or https"));
    }
    Ok(url)
}

fn header(name: &HeaderName, value: String) -> Result<HeaderValue, NoRequest> {
    HeaderValue::try_from(value)
        .map_err(|_| NoRequest::Unfit(format!("the value of the header `{name}` holds a control character")))
}

#[cfg(test)]
mod tests;
