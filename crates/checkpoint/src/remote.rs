//! Stores behind an HTTP service, by way of `object_store`.
//!
//! Credentials and endpoints come from the environment, in the names that each vendor's own tools use (`AWS_REGION`,
//! `AWS_ENDPOINT`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME`, ...). A put of a whole object is atomic
//! there; what cannot be reached is tried again for [`PATIENCE`], so that a checkpoint outlives a hiccup and its failure
//! is told while it still matters.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};
use tokio::runtime::Handle;

use crate::name;
use crate::store::{CheckpointStore, StoreError};

/// How long one call is tried. Longer pauses are the coordinator's: it gives the checkpoint up and begins another.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the store of a scheme; `None`: it is unknown, or was not built in.
pub(crate) fn open(
    scheme: &str,
    url: &str,
    runtime: &Handle,
) -> Option<Result<Arc<dyn CheckpointStore>, StoreError>> {
    let client: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        #[cfg(feature = "s3")]
        "s3" => {
            let builder = object_store::aws::AmazonS3Builder::from_env();
            let builder = builder.with_url(url).with_retry(retry());
            tls();
            builder.build().map(|store| Arc::new(store) as _)
        }
        #[cfg(feature = "gcs")]
        "gs" => {
            let builder = object_store::gcp::GoogleCloudStorageBuilder::from_env();
            let builder = builder.with_url(url).with_retry(retry());
            tls();
            builder.build().map(|store| Arc::new(store) as _)
        }
        #[cfg(feature = "azure")]
        "az" => {
            let builder = object_store::azure::MicrosoftAzureBuilder::from_env();
            let builder = builder.with_url(url).with_retry(retry());
            tls();
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => return None,
    };
    let refused = |cause: String| StoreError::Url { url: url.to_owned(), cause };
    let store = client.map_err(|cause| refused(cause.to_string())).and_then(|client| {
        let below = url.splitn(4, '/').nth(3).unwrap_or_default();
        let prefix = Path::parse(below).map_err(|cause| refused(cause.to_string()))?;
        let store = RemoteStore { url: url.to_owned(), prefix, client, runtime: runtime.clone() };
        Ok(Arc::new(store) as Arc<dyn CheckpointStore>)
    });
    Some(store)
}

fn retry() -> RetryConfig {
    RetryConfig { retry_timeout: PATIENCE, ..RetryConfig::default() }
}

/// The connections' cryptography is `ring`, wherever nobody has chosen another.
fn tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        let _ = rustls::crypto::CryptoProvider::install_default(rustls::crypto::ring::default_provider());
    }
}

struct RemoteStore {
    url: String,
    /// What the names stand below.
    prefix: Path,
    client: Arc<dyn ObjectStore>,
    runtime: Handle,
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteStore").field("url", &self.url).finish_non_exhaustive()
    }
}

impl RemoteStore {
    fn failed(&self, doing: &'static str, name: &str, cause: impl Into<String>) -> StoreError {
        StoreError::Failed { url: self.url.clone(), name: name.to_owned(), doing, cause: cause.into() }
    }

    fn error(&self, doing: &'static str, name: &str, cause: &object_store::Error) -> StoreError {
        let cause = match cause {
            object_store::Error::NotFound { .. } if doing == "read" => {
                return StoreError::NotFound { url: self.url.clone(), name: name.to_owned() };
            }
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
                format!("{cause}; look at the credentials in the environment, and at what they may do there")
            }
            _ => cause.to_string(),
        };
        self.failed(doing, name, cause)
    }

    fn path(&self, doing: &'static str, name: &str) -> Result<Path, StoreError> {
        name::check(name).map_err(|cause| self.failed(doing, name, cause))?;
        Ok(self.prefix.parts().chain(Path::from(name).parts()).collect())
    }

    /// Does it on the runtime and waits for it. Not `block_on`, which panics where a runtime waits already.
    fn wait<T: Send + 'static>(
        &self,
        doing: &'static str,
        name: &str,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // Nobody waits any more: the caller's thread is gone.
            let _ = tell.send(work.await);
        });
        match told.recv() {
            Ok(outcome) => outcome.map_err(|cause| self.error(doing, name, &cause)),
            Err(mpsc::RecvError) => Err(self.failed(doing, name, "the program is stopping")),
        }
    }
}

impl CheckpointStore for RemoteStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let (client, path) = (self.client.clone(), self.path("write", name)?);
        let content = content.to_vec();
        self.wait("write", name, async move { client.put(&path, content.into()).await.map(|_| ()) })
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let (client, path) = (self.client.clone(), self.path("read", name)?);
        self.wait("read", name, async move { client.get(&path).await?.bytes().await.map(Vec::from) })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let (client, path) = (self.client.clone(), self.path("list", folder)?);
        let found: Vec<_> =
            self.wait("list", folder, async move { client.list(Some(&path)).try_collect().await })?;
        let mut names: Vec<String> = found
            .iter()
            .filter_map(|object| object.location.prefix_match(&self.prefix))
            .map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let (client, path) = (self.client.clone(), self.path("remove", name)?);
        self.wait("remove", name, async move {
            match client.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                outcome => outcome,
            }
        })
    }
}
