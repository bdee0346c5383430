//! Places that are taken and given back.

/// Makes room for one more, and for a sixteenth beside it. To double would leave up to half of the memory unused, which
/// at a hundred thousand targets is more than what is known of them; a sixteenth costs each target seventeen moves at most.
pub(crate) fn grow<T>(entries: &mut Vec<T>) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact((entries.len() / 16).max(4));
    }
}

/// Entries at places that stay the same while they are taken.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, entry: T) -> usize {
        if let Some(place) = self.free.pop() {
            if let Some(empty) = self.entries.get_mut(place as usize) {
                *empty = Some(entry);
            }
            return place as usize;
        }
        grow(&mut self.entries);
        self.entries.push(Some(entry));
        self.entries.len() - 1
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let entry = self.entries.get_mut(place)?.take()?;
        self.free.push(place as u32);
        Some(entry)
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        self.entries.get(place)?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> + '_ {
        self.entries.iter().enumerate().filter_map(|(place, entry)| Some((place, entry.as_ref()?)))
    }
}
