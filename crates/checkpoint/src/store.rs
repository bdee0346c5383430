//! What a store can do, wherever it is.

use std::fmt;
use std::sync::Arc;

/// An object could not be written, read or removed. Nothing else was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such object.
    #[error("the checkpoint store {url} has no `{name}`")]
    NotFound {
        /// The store.
        url: String,
        /// The object.
        name: String,
    },
    /// No store can be opened at the URL.
    #[error("`{url}` is no place for checkpoints: {cause}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it, and what would be right.
        cause: String,
    },
    /// The store cannot be reached, or refuses. It may do so for a while only.
    #[error("cannot {doing} `{name}` in the checkpoint store {url}: {cause}")]
    Failed {
        /// The store.
        url: String,
        /// The object.
        name: String,
        /// What was tried: a verb.
        doing: &'static str,
        /// Why it failed.
        cause: String,
    },
}

/// A place for objects. Names are paths of plain parts (`1f/chk-7/metadata`).
pub trait CheckpointStore: Send + Sync + fmt::Debug {
    /// The URL that it was opened with.
    fn url(&self) -> &str;

    /// Writes a whole object. When this returns, it is there in one piece and survives a loss of power; when it fails, there
    /// is the old object or none. An object of that name is replaced.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError>;

    /// Reads a whole object.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Failed`].
    fn get(&self, name: &str) -> Result<Vec<u8>, StoreError>;

    /// The names of all objects below a folder, sorted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]. A folder without objects is none.
    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError>;

    /// Removes an object. One that is gone already is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn remove(&self, name: &str) -> Result<(), StoreError>;

    /// Removes all objects below a folder, and what writes that were cut off have left there. It may stop in the middle;
    /// then it is repeated.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn remove_all(&self, folder: &str) -> Result<(), StoreError> {
        self.list(folder)?.iter().try_for_each(|name| self.remove(name))
    }
}

/// Opens stores by their URL. A role is given one: a simulation's keeps its objects in memory.
pub trait Stores: Send + Sync {
    /// The store at a URL; nothing is written yet.
    ///
    /// # Errors
    ///
    /// [`StoreError::Url`], [`StoreError::Failed`].
    fn open(&self, url: &str) -> Result<Arc<dyn CheckpointStore>, StoreError>;
}
