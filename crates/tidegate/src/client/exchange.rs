//! One request and its answer.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

pub(super) use reqwest::Method;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use serde_json::Value;

use super::error::ClientError;
use super::url::JobMasterUrl;

/// Flink: `client.timeout`.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How much is shown of an answer that cannot be read.
const SHOWN: usize = 200;

/// What is sent along.
pub(super) enum Body {
    /// A JSON text as it is.
    Text(String),
    /// A document.
    Json(Value),
}

#[derive(Debug, Clone)]
pub(super) struct Exchange {
    http: Client,
    url: JobMasterUrl,
}

impl Exchange {
    pub(super) fn new(url: &JobMasterUrl) -> Result<Self, ClientError> {
        let failed = |cause: String| ClientError::Client { cause };
        // A client wants TLS even for plain HTTP, and loading the system's certificates fails where there are none. This
        // one trusts nobody, as a job master is asked without TLS.
        let tls =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| failed(error.to_string()))?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
        let http = Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(root_cause(&error)))?;
        Ok(Self { http, url: url.clone() })
    }

    pub(super) const fn url(&self) -> &JobMasterUrl {
        &self.url
    }

    /// Asks, and reads the answer's document; `null` where there is none.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<Body>,
    ) -> Result<Value, ClientError> {
        let at = self.url.at(path, query).ok_or_else(|| self.strange("it has no paths"))?;
        let mut request = self.http.request(method, at);
        if let Some(body) = body {
            let text = match body {
                Body::Text(text) => text,
                Body::Json(document) => document.to_string(),
            };
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(text);
        }
        let unreachable = |error: reqwest::Error| ClientError::Unreachable {
            url: self.url.clone(),
            cause: root_cause(&error),
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreachable)?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|_| self.strange(&format!("{status} {}", beginning(&body))))
    }

    /// Something answers that makes no sense.
    pub(super) fn strange(&self, what: &str) -> ClientError {
        ClientError::Strange { url: self.url.clone(), what: what.to_owned() }
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> ClientError {
        let url = self.url.clone();
        let errors = errors_of(body);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            // Also said by balancers before it, in words of their own.
            let message = errors.map_or_else(|| beginning(body), |errors| errors.join("; "));
            return ClientError::Unavailable { url, message };
        }
        let Some(errors) = errors else {
            return self.strange(&format!("{status} {}", beginning(body)));
        };
        let message = errors.join("; ");
        match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => ClientError::Refused { errors },
            StatusCode::NOT_FOUND => ClientError::NotFound { url, message },
            StatusCode::METHOD_NOT_ALLOWED => ClientError::MethodNotAllowed { url, message },
            StatusCode::CONFLICT => ClientError::Conflict { url, message },
            other => ClientError::Status { url, status: other.as_u16(), message },
        }
    }
}

/// The texts of `{"errors":["..."]}`; absent where the answer is nothing of that kind.
fn errors_of(body: &[u8]) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let errors = answer.get("errors")?.as_array()?;
    let errors: Vec<String> = errors.iter().filter_map(|e| e.as_str().map(str::to_owned)).collect();
    Some(errors).filter(|errors| !errors.is_empty())
}

fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { "(no body)".to_owned() } else { text.chars().take(SHOWN).collect() }
}

/// What the system said: the innermost cause, as those around it repeat the URL.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> ClientError {
        let exchange = Exchange::new(&"http://127.0.0.1:1".parse().unwrap()).unwrap();
        exchange.refusal(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn each_status_has_its_meaning() {
        let body = r#"{"errors":["one","two"]}"#;
        assert_eq!(refusal(400, body), ClientError::Refused { errors: vec!["one".into(), "two".into()] });
        assert!(matches!(refusal(413, body), ClientError::Refused { .. }));
        assert!(matches!(refusal(404, body), ClientError::NotFound { message, .. } if message == "one; two"));
        assert!(matches!(refusal(405, body), ClientError::MethodNotAllowed { .. }));
        assert!(matches!(refusal(409, body), ClientError::Conflict { .. }));
        assert!(matches!(refusal(500, body), ClientError::Status { status: 500, .. }));
        assert!(refusal(503, "<html>no server</html>").is_passing());
    }

    #[test]
    fn another_program_at_the_address_is_no_job_master() {
        for body in ["<html>\nnot here</html>", r#"{"errors":[]}"#, r#"{"error":"x"}"#, ""] {
            let error = refusal(404, body);
            assert!(matches!(error, ClientError::Strange { .. }), "{error}");
        }
        assert!(refusal(404, "<a>\n <b>").to_string().ends_with("404 Not Found <a> <b>"));
    }

    #[tokio::test]
    async fn a_refused_connection_is_told_with_the_address_and_what_to_do() {
        // Bound, so that nobody else gets the port, and not listening.
        let bound = tokio::net::TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = bound.local_addr().unwrap();
        let exchange = Exchange::new(&address.to_string().parse().unwrap()).unwrap();
        let error = exchange.ask(Method::GET, &["jobs"], &[], None).await.unwrap_err();
        assert!(error.is_passing());
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("the job master at http://{address} cannot be reached: ")),
            "{text}"
        );
        assert!(text.contains("refused") && text.contains("start it with `jobmaster`"), "{text}");
    }
}
