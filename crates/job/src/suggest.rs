//! What may have been meant by a word that is none.

/// The candidate that is near enough to `word` to be a slip of the fingers.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase().replace('-', "_");
    candidates
        .into_iter()
        .map(|candidate| {
            let near = candidate.to_lowercase().replace('-', "_");
            (strsim::jaro_winkler(&lower, &near), candidate)
        })
        .filter(|(likeness, _)| *likeness >= 0.84)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let keys = [
            "name",
            "on_empty",
            "on_failure",
            "timeout",
            "attempt_timeout",
            "max_parallelism",
            "parallelism",
        ];
        for (word, meant) in [
            ("on_emtpy", Some("on_empty")),
            ("on-empty", Some("on_empty")),
            ("onFailure", Some("on_failure")),
            ("time_out", Some("timeout")),
            ("paralelism", Some("parallelism")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(closest(word, keys), meant, "{word}");
        }
    }
}
