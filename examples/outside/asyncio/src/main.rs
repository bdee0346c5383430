//! Asks a slow service about each number and keeps the order of the numbers.

use std::time::Duration;

use asyncio::{AsyncWaitExt, Options};
use futures::{StreamExt, stream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), asyncio::OptionsError> {
    let options = Options::ordered().capacity(10).timeout(Duration::from_secs(1)).build()?;
    let squares = stream::iter(1..=10_u64).async_wait(options, |n: &u64| {
        let n = *n;
        async move {
            // The last is answered first, and still leaves last.
            tokio::time::sleep(Duration::from_millis(11 - n)).await;
            Ok::<_, std::io::Error>(n * n)
        }
    });
    let squares: Vec<u64> = squares.filter_map(|answer| async { answer.ok() }).collect().await;
    assert_eq!(squares, [1, 4, 9, 16, 25, 36, 49, 64, 81, 100]);
    println!("in order: {squares:?}");
    Ok(())
}
