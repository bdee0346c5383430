//! The Java peers, where they are at hand: a process each.

use std::process::Command;

/// Events a second of the classic queue, as `ClassicQueue` prints them.
pub(crate) fn throughput(folder: &str, load: &str, producers: u64, events: u64) -> Result<f64, String> {
    let arguments = ["-Xms4g", "-Xmx4g", "-XX:+UseParallelGC", "-cp", folder, "ClassicQueue", load];
    let output = Command::new("java")
        .args(arguments)
        .args([producers.to_string(), (events * 2).to_string(), "decaying".to_owned()])
        .env("REPS", "1")
        .output()
        .map_err(|error| format!("java: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.split("\"events_per_s\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
    found.and_then(|number| number.trim().parse().ok()).ok_or(format!(
        "java printed no rate: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    ))
}
