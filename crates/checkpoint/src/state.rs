//! State by value or by name.

use wire::v1;
use wire::v1::state_handle::Place;
use xxhash_rust::xxh3::xxh3_64;

use crate::envelope::{FormatError, ReadError};
use crate::store::{CheckpointStore, StoreError};

/// State up to this many bytes travels in its handle and lies in the metadata (Flink's threshold for the same).
pub const INLINE_LIMIT: usize = 20 * 1024;

/// Stores a task's state, as an object of this name unless it is small.
///
/// # Errors
///
/// [`StoreError::Failed`].
pub fn write_state(
    store: &dyn CheckpointStore,
    name: &str,
    bytes: &[u8],
) -> Result<v1::StateHandle, StoreError> {
    let place = if bytes.len() <= INLINE_LIMIT {
        Place::Inline(bytes.to_vec().into())
    } else {
        store.put(name, bytes)?;
        Place::Object(name.to_owned())
    };
    Ok(v1::StateHandle { place: Some(place), length: length(bytes), checksum: xxh3_64(bytes) })
}

/// The state behind a handle.
///
/// # Errors
///
/// [`ReadError`]: it cannot be read, or is not what was written.
pub fn read_state(store: &dyn CheckpointStore, handle: &v1::StateHandle) -> Result<Vec<u8>, ReadError> {
    let (name, bytes) = match &handle.place {
        Some(Place::Inline(bytes)) => ("inline state", bytes.to_vec()),
        Some(Place::Object(name)) => (name.as_str(), store.get(name)?),
        None => ("inline state", Vec::new()),
    };
    let (found, checksum) = (length(&bytes), xxh3_64(&bytes));
    let cause = if found < handle.length {
        FormatError::Truncated { expected: handle.length, found }
    } else if found > handle.length || checksum != handle.checksum {
        FormatError::Damaged { expected: handle.checksum, found: checksum }
    } else {
        return Ok(bytes);
    };
    Err(ReadError::Format { url: store.url().to_owned(), name: name.to_owned(), cause })
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    #[test]
    fn small_state_travels_and_large_state_is_an_object() {
        let store = MemoryStore::new("memory://s");
        let small = vec![7; INLINE_LIMIT];
        let handle = write_state(&store, "j/chk-1/s", &small).unwrap();
        assert!(matches!(handle.place, Some(Place::Inline(_))));
        assert_eq!(store.list("j").unwrap(), Vec::<String>::new());
        assert_eq!(read_state(&store, &handle).unwrap(), small);

        let large = vec![7; INLINE_LIMIT + 1];
        let handle = write_state(&store, "j/chk-1/s", &large).unwrap();
        assert_eq!(handle.place, Some(Place::Object("j/chk-1/s".to_owned())));
        assert_eq!(read_state(&store, &handle).unwrap(), large);
    }

    #[test]
    fn state_that_is_not_what_was_written_is_refused_by_name() {
        let store = MemoryStore::new("memory://s");
        let handle = write_state(&store, "j/chk-1/s", &vec![7; INLINE_LIMIT + 1]).unwrap();
        store.damage("j/chk-1/s", |bytes| bytes[9] = 8);
        let refused = read_state(&store, &handle).unwrap_err();
        assert!(matches!(refused, ReadError::Format { cause: FormatError::Damaged { .. }, .. }));
        assert!(refused.to_string().contains("j/chk-1/s"), "{refused}");
        store.damage("j/chk-1/s", |bytes| bytes.truncate(5));
        let refused = read_state(&store, &handle).unwrap_err();
        assert!(refused.to_string().contains("5 bytes of 20481"), "{refused}");
        store.remove("j/chk-1/s").unwrap();
        assert!(matches!(read_state(&store, &handle), Err(ReadError::Store(StoreError::NotFound { .. }))));
    }

    #[test]
    fn a_handle_without_a_place_is_not_taken_for_state() {
        let store = MemoryStore::new("memory://s");
        let handle = v1::StateHandle { place: None, length: 3, checksum: 0 };
        assert!(matches!(
            read_state(&store, &handle),
            Err(ReadError::Format { cause: FormatError::Truncated { .. }, .. })
        ));
    }
}
