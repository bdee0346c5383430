//! Opening a store by its URL.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::file::FileStore;
use crate::store::{CheckpointStore, StoreError, Stores};

/// The stores that there are: `file://`, and those that were built in: `s3://` with the feature `s3`, `gs://` with `gcs`,
/// `az://` with `azure`.
#[derive(Debug, Clone)]
pub struct UrlStores {
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "only remote stores need it"))]
    runtime: Handle,
}

impl UrlStores {
    /// Stores that talk to remote services on this runtime, which must have threads of its own: calls wait for it.
    #[must_use]
    pub const fn new(runtime: Handle) -> Self {
        Self { runtime }
    }

    #[cfg(feature = "remote")]
    fn remote(&self, scheme: &str, url: &str) -> Option<Result<Arc<dyn CheckpointStore>, StoreError>> {
        crate::remote::open(scheme, url, &self.runtime)
    }

    #[cfg(not(feature = "remote"))]
    #[expect(clippy::unused_self, reason = "as its other self")]
    const fn remote(&self, _: &str, _: &str) -> Option<Result<Arc<dyn CheckpointStore>, StoreError>> {
        None
    }
}

impl Stores for UrlStores {
    fn open(&self, url: &str) -> Result<Arc<dyn CheckpointStore>, StoreError> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok(Arc::new(FileStore::new(url, folder(url, url)?)));
        };
        if scheme == "file" {
            return Ok(Arc::new(FileStore::new(url, folder(url, rest)?)));
        }
        self.remote(scheme, url).unwrap_or_else(|| Err(refused(url, not_there(scheme))))
    }
}

fn refused(url: &str, cause: String) -> StoreError {
    StoreError::Url { url: url.to_owned(), cause }
}

/// The folder that a URL means. It is a path as it stands: nothing is percent-decoded, as in the other paths of a job.
fn folder(url: &str, rest: &str) -> Result<PathBuf, StoreError> {
    let path = rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest);
    if !path.starts_with('/') {
        let cause = if url.contains("://") {
            let folder = path.split_once('/').map_or("", |(_, folder)| folder);
            format!("it names the host `{}`; write file:///{folder}", path.split('/').next().unwrap_or(path))
        } else {
            "the path is relative; write it from the root, as in file:///var/lib/tidegate/checkpoints"
                .to_owned()
        };
        return Err(refused(url, cause));
    }
    if path.contains('\0') {
        return Err(refused(url, "it has a zero byte".to_owned()));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(refused(url, "it has `..`; write the folder itself".to_owned()));
    }
    Ok(PathBuf::from(path.trim_end_matches('/')).components().collect()).and_then(|path: PathBuf| {
        if path.as_os_str().is_empty() {
            return Err(refused(url, "it is the root of the file system; write a folder".to_owned()));
        }
        Ok(path)
    })
}

/// Why there is no store of a scheme.
fn not_there(scheme: &str) -> String {
    let feature = match scheme {
        "s3" => "s3",
        "gs" => "gcs",
        "az" => "azure",
        _ => return "there are file://, s3://, gs:// and az:// addresses".to_owned(),
    };
    format!(
        "this program was built without {scheme}:// addresses; build it with the feature `{feature}`, or write a file:// URL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str) -> Result<Arc<dyn CheckpointStore>, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        UrlStores::new(runtime.handle().clone()).open(url)
    }

    #[test]
    fn a_folder_is_named_by_url_or_path_and_opened_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a b%20[x]");
        for url in [
            format!("file://{}", path.display()),
            format!("file://localhost{}/", path.display()),
            path.display().to_string(),
        ] {
            let store = open(&url).unwrap();
            assert_eq!(store.url(), url);
            assert_eq!(store.list("x").unwrap(), Vec::<String>::new());
            assert!(!path.exists());
        }
        open(&format!("file://{}", path.display())).unwrap().put("x/y", b"z").unwrap();
        assert_eq!(std::fs::read(path.join("x/y")).unwrap(), b"z");
    }

    #[test]
    fn what_is_no_place_says_what_would_be() {
        for (url, word) in [
            ("relative/path", "from the root"),
            ("file://host/var/c", "write file:///var/c"),
            ("file:///", "root of the file system"),
            ("file:///a/../b", "`..`"),
            ("ftp://x/y", "there are file://"),
        ] {
            let refused = open(url).unwrap_err();
            assert!(matches!(refused, StoreError::Url { .. }), "{url}");
            let text = refused.to_string();
            assert!(text.contains(word) && text.contains(url), "{text}");
        }
    }

    #[cfg(not(feature = "remote"))]
    #[test]
    fn what_was_not_built_in_names_its_feature() {
        for (url, feature) in [("s3://b/p", "`s3`"), ("gs://b/p", "`gcs`"), ("az://b/p", "`azure`")] {
            let refused = open(url).unwrap_err();
            assert!(matches!(refused, StoreError::Url { .. }), "{url}");
            assert!(refused.to_string().contains(feature), "{refused}");
        }
    }
}
