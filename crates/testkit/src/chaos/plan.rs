//! Which faults happen when.

use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Spared;
use crate::processes::Role;

/// Something bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9`, and started again on its own state and port after a while.
    Kill {
        /// Who.
        role: Role,
        /// How long it is away.
        away: Duration,
    },
    /// It stands still for a while.
    Stop {
        /// Who.
        role: Role,
        /// How long.
        pause: Duration,
    },
    /// What one sends does not reach the other for a while.
    Cut {
        /// Who sends.
        from: Role,
        /// Who does not receive.
        to: Role,
        /// Whether it is so the other way as well.
        both_ways: bool,
        /// How long.
        pause: Duration,
    },
}

impl Fault {
    /// Until it is over.
    #[must_use]
    pub const fn length(&self) -> Duration {
        match self {
            Self::Kill { away, .. } => *away,
            Self::Stop { pause, .. } | Self::Cut { pause, .. } => *pause,
        }
    }

    /// Whom it happens to.
    fn roles(&self) -> Vec<Role> {
        match self {
            Self::Kill { role, .. } | Self::Stop { role, .. } => vec![*role],
            Self::Cut { from, to, .. } => vec![*from, *to],
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.length().as_millis();
        match self {
            Self::Kill { role, .. } => write!(f, "kill -9 of {role}, away for {length} ms"),
            Self::Stop { role, .. } => write!(f, "{role} stands still for {length} ms"),
            Self::Cut { from, to, both_ways, .. } => {
                let arrow = if *both_ways { "<->" } else { "->" };
                write!(f, "cut {from} {arrow} {to} for {length} ms")
            }
        }
    }
}

/// A fault and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Since the job reads.
    pub at: Duration,
    /// What happens.
    pub fault: Fault,
}

impl Drawn {
    fn end(&self) -> Duration {
        self.at + self.fault.length()
    }
}

/// From the end of a fault's beginning to the next, in milliseconds.
const BETWEEN: std::ops::Range<u64> = 2_500..8_000;
/// How long a killed process is away.
const AWAY: std::ops::Range<u64> = 50..3_000;
/// How long one stands still or is cut off: less and more than the timeout of heartbeats.
const PAUSE: std::ops::Range<u64> = 300..6_000;

/// Draws the faults of a run: equal seeds, equal faults. To one process, one thing happens at a time.
#[must_use]
pub fn draw(seed: u64, length: Duration, task_executors: usize, spared: &[Spared]) -> Vec<Drawn> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut millis = move |range| Duration::from_millis(random.random_range(range));
    let mut drawn: Vec<Drawn> = Vec::new();
    let mut at = millis(500..3_000);
    while at < length {
        // All of it is drawn whether it is used or not: sparing somebody leaves the other faults where they are.
        let choice =
            [millis(0..100), millis(0..1_000), millis(0..1_000)].map(|draw| draw.as_millis() as usize);
        let (away, pause) = (millis(AWAY), millis(PAUSE));
        let fault = fault(choice, (away, pause), task_executors);
        let busy =
            |role: &Role| drawn.iter().any(|other| other.end() >= at && other.fault.roles().contains(role));
        if !fault.roles().iter().any(busy) && !is_spared(&fault, spared) {
            drawn.push(Drawn { at, fault });
        }
        at += millis(BETWEEN);
    }
    drawn
}

fn fault(
    [kind, first, second]: [usize; 3],
    (away, pause): (Duration, Duration),
    task_executors: usize,
) -> Fault {
    let role = match first % 10 {
        // Half of it happens to task executors.
        0..5 => Role::TaskExecutor(second % task_executors),
        5..8 => Role::JobMaster,
        _ => Role::ResourceManager,
    };
    match kind {
        0..45 => Fault::Kill { role, away },
        45..75 => Fault::Stop { role, pause },
        _ => {
            let to = match role {
                Role::TaskExecutor(n) if first % 2 == 0 && task_executors > 1 => {
                    Role::TaskExecutor((n + 1) % task_executors)
                }
                Role::JobMaster if second % 2 == 0 => Role::ResourceManager,
                Role::TaskExecutor(_) => Role::JobMaster,
                Role::JobMaster | Role::ResourceManager => Role::TaskExecutor(second % task_executors),
            };
            let turned = second % 3 == 0;
            let (from, to) = if turned { (to, role) } else { (role, to) };
            Fault::Cut { from, to, both_ways: first % 3 == 0, pause }
        }
    }
}

fn is_spared(fault: &Fault, spared: &[Spared]) -> bool {
    let role_is_spared = |role: &Role| {
        spared.contains(&match role {
            Role::ResourceManager => Spared::ResourceManager,
            Role::JobMaster => Spared::JobMaster,
            Role::TaskExecutor(_) => Spared::TaskExecutors,
        })
    };
    let is_cut = matches!(fault, Fault::Cut { .. });
    (is_cut && spared.contains(&Spared::Cuts)) || fault.roles().iter().any(role_is_spared)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(600);

    #[test]
    fn equal_seeds_draw_equal_faults() {
        assert_eq!(draw(7, LENGTH, 3, &[]), draw(7, LENGTH, 3, &[]));
        assert_ne!(draw(7, LENGTH, 3, &[]), draw(8, LENGTH, 3, &[]));
    }

    #[test]
    fn everything_happens_to_everybody_and_one_thing_at_a_time() {
        let drawn = draw(1, LENGTH * 10, 3, &[]);
        for (place, one) in drawn.iter().enumerate() {
            for other in drawn.iter().skip(place + 1).filter(|other| other.at <= one.end()) {
                let both = one.fault.roles().iter().any(|role| other.fault.roles().contains(role));
                assert!(!both, "{one:?} {other:?}");
            }
        }
        let masters = [Role::ResourceManager, Role::JobMaster];
        for role in masters.into_iter().chain((0..3).map(Role::TaskExecutor)) {
            let any = |wanted: fn(&Fault) -> bool| {
                drawn.iter().any(|drawn| wanted(&drawn.fault) && drawn.fault.roles().contains(&role))
            };
            assert!(any(|fault| matches!(fault, Fault::Kill { .. })), "{role} is never killed");
            assert!(any(|fault| matches!(fault, Fault::Stop { .. })), "{role} never stands still");
            assert!(any(|fault| matches!(fault, Fault::Cut { both_ways: true, .. })), "{role}");
            assert!(any(|fault| matches!(fault, Fault::Cut { both_ways: false, .. })), "{role}");
        }
        let per_minute = drawn.len() as f64 / 100.0;
        assert!((6.0..14.0).contains(&per_minute), "{per_minute} faults a minute");
    }

    #[test]
    fn who_is_spared_is_left_alone_and_others_are_not() {
        let spared = [Spared::JobMaster, Spared::Cuts];
        let drawn = draw(1, LENGTH, 3, &spared);
        assert!(drawn.iter().all(|drawn| !drawn.fault.roles().contains(&Role::JobMaster)));
        assert!(drawn.iter().all(|drawn| !matches!(drawn.fault, Fault::Cut { .. })));
        assert!(drawn.iter().any(|drawn| drawn.fault.roles() == [Role::ResourceManager]));
        assert!(drawn.iter().any(|drawn| drawn.fault.roles() == [Role::TaskExecutor(2)]));
    }
}
