//! The examples do what their first lines say. Each checks itself; here is looked at what it prints.
//!
//! They are compiled in as modules, because no test is told where the programs made of them are.

#[cfg(feature = "tokio")]
#[allow(dead_code)]
#[path = "../examples/dead_letters.rs"]
mod dead_letters;
#[cfg(feature = "tokio")]
#[allow(dead_code)]
#[path = "../examples/http_lookup.rs"]
mod http_lookup;
#[cfg(feature = "tokio")]
#[allow(dead_code)]
#[path = "../examples/orders.rs"]
mod orders;
#[allow(dead_code)]
#[path = "../examples/without_tokio.rs"]
mod without_tokio;

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn the_three_orders_give_the_same_answers_at_other_times() {
    let printed = orders::run().await.unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines,
        [
            "  ordered:  a1 60 ms  a2 60 ms  b1 60 ms  c1 60 ms  b2 60 ms",
            "unordered:  c1 5 ms  a2 10 ms  b2 10 ms  b1 20 ms  a1 60 ms",
            "    keyed:  c1 5 ms  b1 20 ms  b2 30 ms  a1 60 ms  a2 70 ms",
        ]
    );
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn every_order_ends_in_one_place() {
    let printed = dead_letters::run().await.unwrap();
    assert!(
        printed.starts_with("30 billed, 4 kept, 6 dead letters; 49 calls, 9 of them retries"),
        "{printed}"
    );
    assert!(printed.contains("order 13: the async call timed out (1 attempts)"), "{printed}");
    assert!(printed.contains("order 20: busy, come again in 20ms (3 attempts)"), "{printed}");
}

/// On the real clock: a paused one would run ahead while sockets are waited for.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn look_ups_over_http_keep_each_order() {
    let printed = http_lookup::run().await.unwrap();
    let ordered = "  ordered: apple-1=1.99  banana-1=1.99  apple-2=1.99  cherry-1=1.99  banana-2=1.99";
    assert_eq!(printed.lines().next(), Some(ordered));
}

#[test]
fn plain_threads_drive_the_operator_and_its_deadlines() {
    let printed = without_tokio::run().unwrap();
    assert!(printed.contains("\n7: timed out\n"), "{printed}");
    assert!(printed.ends_with("20 records, 1 call(s) never answered\n"), "{printed}");
}
