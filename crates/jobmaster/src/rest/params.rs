//! The query of a request, refused like everything else where it makes no sense.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::errors::ApiError;

/// As axum's `Query`, but a mistake is answered with a body of one key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejected) => Err(ApiError::bad_request(vec![format!("the query: {}", rejected.body_text())])),
        }
    }
}
