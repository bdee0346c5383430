//! Drawing the epoch of a master: each start gets a higher one, and has it on the disk before it serves.

use runtime_core::{Epoch, EpochMillis};

use crate::state_dir::{StateDir, StateDirError};

const FILE: &str = "epoch";
const EXPECTED: &str = "one whole number and a line end";

impl StateDir {
    /// Draws the next epoch, `max(stored + 1, wall)`, and stores it. The wall clock makes it grow even when the folder
    /// with the stored one is lost; the stored one makes it grow even when the clock goes back.
    ///
    /// # Errors
    /// [`StateDirError::Garbage`] where the stored one is none: guessing could lead back to an epoch that was in use.
    pub fn draw_epoch(&self, wall: EpochMillis) -> Result<Epoch, StateDirError> {
        let next = match self.read(FILE)? {
            None => 1,
            Some(content) => self.successor(&content)?,
        };
        let epoch = Epoch(next.max(u64::try_from(wall.0).unwrap_or(0)));
        self.write(FILE, format!("{epoch}\n").as_bytes())?;
        Ok(epoch)
    }

    fn successor(&self, content: &[u8]) -> Result<u64, StateDirError> {
        let stored = std::str::from_utf8(content)
            .ok()
            .and_then(|text| text.strip_suffix('\n'))
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|text| text.parse::<u64>().ok());
        stored.and_then(|stored| stored.checked_add(1)).ok_or_else(|| StateDirError::Garbage {
            path: self.path().join(FILE),
            found: String::from_utf8_lossy(content).chars().take(40).collect(),
            expected: EXPECTED,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    fn open(dir: &tempfile::TempDir) -> StateDir {
        StateDir::open(dir.path(), Role::ResourceManager).unwrap()
    }

    #[test]
    fn each_start_draws_a_higher_epoch_although_the_clock_goes_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(&dir).draw_epoch(EpochMillis(1_000)).unwrap(), Epoch(1_000));
        assert_eq!(open(&dir).draw_epoch(EpochMillis(1_000)).unwrap(), Epoch(1_001));
        assert_eq!(open(&dir).draw_epoch(EpochMillis(-5)).unwrap(), Epoch(1_002));
        assert_eq!(open(&dir).draw_epoch(EpochMillis(2_000)).unwrap(), Epoch(2_000));
    }

    #[test]
    fn the_first_epoch_is_known_whatever_the_clock_says() {
        let dir = tempfile::tempdir().unwrap();
        assert!(open(&dir).draw_epoch(EpochMillis(0)).unwrap().is_known());
    }

    #[test]
    fn garbage_is_refused_by_name_and_left_as_it_is() {
        for garbage in ["", "12", "x\n", "-1\n", "+1\n", "18446744073709551615\n", "99999999999999999999\n"] {
            let dir = tempfile::tempdir().unwrap();
            let state = open(&dir);
            let file = state.path().join("epoch");
            std::fs::write(&file, garbage).unwrap();
            let refused = state.draw_epoch(EpochMillis(5)).unwrap_err();
            assert!(matches!(refused, StateDirError::Garbage { .. }), "{garbage:?}");
            assert!(refused.to_string().contains("resourcemanager/epoch"), "{refused}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), garbage);
        }
    }
}
