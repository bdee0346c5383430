//! Stores in memory, for simulations and tests, with faults on demand.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name;
use crate::store::{CheckpointStore, StoreError, Stores};

/// Objects in memory. Clones are the same store, and outlive every role that uses it, as a disk does.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    url: Arc<str>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Vec<u8>>,
    faults: Faults,
}

/// What goes wrong.
#[derive(Debug, Default)]
struct Faults {
    /// Count down to a failure.
    put: Option<u64>,
    get: Option<u64>,
    remove: Option<u64>,
    full: bool,
    unreachable: bool,
    random: Option<Random>,
}

/// Failures drawn from a seed.
#[derive(Debug)]
struct Random {
    state: u64,
    rate: f64,
}

impl Random {
    /// Whether the next call fails (`SplitMix64`: equal seeds, equal failures, in every version of every crate).
    fn strikes(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // 53 bits make an even fraction below one.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let fraction = (z >> 11) as f64 / (1_u64 << 53) as f64;
        fraction < self.rate
    }
}

impl Faults {
    /// Why a call fails, if it does. `nth` is the counter of its kind.
    fn cause(&mut self, doing: &str) -> Option<&'static str> {
        if self.unreachable {
            return Some("it is unreachable");
        }
        let nth = match doing {
            "write" => &mut self.put,
            "read" => &mut self.get,
            "remove" => &mut self.remove,
            _ => &mut None,
        };
        *nth = nth.map(|n| n.saturating_sub(1));
        if *nth == Some(0) {
            *nth = None;
            return Some("a fault was asked for");
        }
        if self.full && doing == "write" {
            return Some("the disk is full");
        }
        self.random.as_mut().is_some_and(Random::strikes).then_some("a fault was drawn")
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { url: url.into(), inner: Arc::default() }
    }

    /// The `nth` write from now fails, 1 being the next.
    pub fn fail_put(&self, nth: u64) {
        self.lock().faults.put = Some(nth);
    }

    /// The `nth` reading from now fails, 1 being the next.
    pub fn fail_get(&self, nth: u64) {
        self.lock().faults.get = Some(nth);
    }

    /// The `nth` removal from now fails, 1 being the next.
    pub fn fail_remove(&self, nth: u64) {
        self.lock().faults.remove = Some(nth);
    }

    /// Every write fails until it is told otherwise.
    pub fn set_full(&self, full: bool) {
        self.lock().faults.full = full;
    }

    /// Everything fails until it is told otherwise.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.lock().faults.unreachable = unreachable;
    }

    /// From now on each call fails with a probability of `rate`, drawn from `seed`; 0 ends it.
    pub fn fail_at_random(&self, seed: u64, rate: f64) {
        self.lock().faults.random = (rate > 0.0).then_some(Random { state: seed, rate });
    }

    /// Changes the bytes of an object, as a bad disk does. Answers whether there is such an object.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.lock().objects.get_mut(name).map(change).is_some()
    }

    /// The names of all objects, sorted; no fault hinders it.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().objects.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content, for a call that does not fail.
    fn call(&self, doing: &'static str, name: &str) -> Result<MutexGuard<'_, Inner>, StoreError> {
        let mut inner = self.lock();
        match name::check(name).err().or_else(|| inner.faults.cause(doing)) {
            None => Ok(inner),
            Some(cause) => {
                let (url, name, cause) = (self.url.to_string(), name.to_owned(), cause.to_owned());
                Err(StoreError::Failed { url, name, doing, cause })
            }
        }
    }
}

impl CheckpointStore for MemoryStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.call("write", name)?.objects.insert(name.to_owned(), content.to_vec());
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let inner = self.call("read", name)?;
        let content = inner.objects.get(name).cloned();
        content.ok_or_else(|| StoreError::NotFound { url: self.url.to_string(), name: name.to_owned() })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let inner = self.call("list", folder)?;
        Ok(inner.objects.keys().filter(|name| name::is_below(name, folder)).cloned().collect())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.call("remove", name)?.objects.remove(name);
        Ok(())
    }
}

/// Stores in memory by URL, whatever the URL: it is made at its first use. Clones are the same stores.
#[derive(Debug, Clone, Default)]
pub struct MemoryStores {
    stores: Arc<Mutex<HashMap<String, MemoryStore>>>,
}

impl MemoryStores {
    /// No store yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The store at a URL, for faults and a look inside.
    #[must_use]
    pub fn store(&self, url: &str) -> MemoryStore {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(url.to_owned()).or_insert_with(|| MemoryStore::new(url)).clone()
    }

    /// Every store that was used so far.
    #[must_use]
    pub fn all(&self) -> Vec<MemoryStore> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Stores for MemoryStores {
    fn open(&self, url: &str) -> Result<Arc<dyn CheckpointStore>, StoreError> {
        Ok(Arc::new(self.store(url)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_outlives_those_who_opened_it() {
        let stores = MemoryStores::new();
        stores.open("memory://a").unwrap().put("j/x", b"1").unwrap();
        assert_eq!(stores.open("memory://a").unwrap().get("j/x").unwrap(), b"1");
        assert!(matches!(stores.open("memory://b").unwrap().get("j/x"), Err(StoreError::NotFound { .. })));
    }

    #[test]
    fn the_write_that_was_named_fails_and_no_other() {
        let store = MemoryStore::new("memory://a");
        store.fail_put(2);
        let outcomes: Vec<bool> = (0..4).map(|n| store.put(&format!("j/{n}"), b"").is_ok()).collect();
        assert_eq!(outcomes, [true, false, true, true]);
        assert_eq!(store.names(), ["j/0", "j/2", "j/3"]);
    }

    #[test]
    fn a_full_store_can_be_read_and_emptied() {
        let store = MemoryStore::new("memory://a");
        store.put("j/x", b"old").unwrap();
        store.set_full(true);
        let refused = store.put("j/x", b"new").unwrap_err();
        assert!(refused.to_string().contains("full"), "{refused}");
        assert_eq!(store.get("j/x").unwrap(), b"old");
        store.remove("j/x").unwrap();
        store.set_full(false);
        store.put("j/x", b"new").unwrap();
        store.set_unreachable(true);
        assert!(store.get("j/x").is_err() && store.list("j").is_err() && store.remove("j/x").is_err());
    }

    #[test]
    fn equal_seeds_fail_equally() {
        let run = |seed| {
            let store = MemoryStore::new("memory://a");
            store.fail_at_random(seed, 0.3);
            (0..200).map(|_| store.put("j/x", b"").is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let failed = run(1).iter().filter(|went| !**went).count();
        assert!((30..90).contains(&failed), "{failed}");
    }
}
