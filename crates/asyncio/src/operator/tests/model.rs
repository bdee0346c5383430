//! Random histories: the operator and a plain model must agree on everything that can be seen.

pub(super) mod pair;
mod plain;
pub(super) mod setup;
mod steps;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub(super) use plain::{Item, State};

/// Seeds of one run of the suite.
const SEEDS: u64 = 200;
/// Histories a seed.
const HISTORIES: u32 = 8;

/// `ASYNCIO_SEED` chooses other seeds, that one first; a failure names its seed and the smallest history that shows it.
#[test]
fn operator_and_plain_model_agree_on_random_histories() {
    let first: u64 =
        std::env::var("ASYNCIO_SEED").map_or(1, |text| text.parse().expect("ASYNCIO_SEED is a number"));
    println!("ASYNCIO_SEED={first}, and the {} after it", SEEDS - 1);
    let seen = steps::Seen::default();
    for seed in (first..).take(SEEDS as usize) {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Config {
            cases: HISTORIES,
            failure_persistence: None,
            max_shrink_iters: 20_000,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        if let Err(failure) = runner.run(&steps::histories(), |history| {
            history.run(&seen);
            Ok(())
        }) {
            panic!("ASYNCIO_SEED={seed}: {failure}");
        }
    }
    seen.check();
}
