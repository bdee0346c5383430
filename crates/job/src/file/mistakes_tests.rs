//! The mistakes that a job file can hold: text in, messages with line, column and path out.

use super::*;

/// A job with these steps; they start on line 4.
fn base(steps: &str) -> String {
    format!(
        "name: j\nsource: {{file: {{path: in.jsonl}}}}\nsteps:\n{steps}sink: {{file: {{path: out.jsonl}}}}\n"
    )
}

/// A job with one enrichment; further keys start on line 7.
fn enrich(keys: &str) -> String {
    base(&format!("  - enrich:\n      name: c\n      call: {{rust: f}}\n{keys}"))
}

/// A job whose one enrichment asks this.
fn call(call: &str) -> String {
    base(&format!("  - enrich:\n      name: c\n      call: {call}\n"))
}

/// A job that is right but for the change.
fn plain(from: &str, to: &str) -> String {
    let right = base("  - filter: a\n");
    assert!(right.contains(from), "{from}");
    right.replace(from, to)
}

/// Each text with the messages it gets, `line:column: path: message`.
#[track_caller]
fn refused(cases: &[(String, &[&str])]) {
    for (text, expected) in cases {
        let errors = JobFile::parse(text, "j.yaml").expect_err(text);
        let expected: Vec<String> = expected.iter().map(|line| format!("j.yaml:{line}")).collect();
        assert_eq!(errors.to_string(), expected.join("\n"), "{text}");
    }
}

#[test]
fn the_jobs_that_the_cases_spoil_are_right() {
    for text in [base("  - filter: a\n"), enrich(""), call("{http: {url: \"http://h/{a}\"}}")] {
        JobFile::parse(&text, "j.yaml").unwrap();
    }
}

#[test]
fn unknown_and_doubled_keys_say_what_is_allowed() {
    refused(&[
        (enrich("      call: {rust: g}\n"), &["7:7: steps[0].enrich: duplicate mapping key: call"]),
        (
            plain("out.jsonl}}", "out.jsonl}}\ndead_letters: {file: {path: d.jsonl}, parallelism: 2}"),
            &["6:39: dead_letters.parallelism: unknown key; allowed here: file"],
        ),
        (
            plain("file: {path: in.jsonl}", "kafka: {}"),
            &["2:10: source.kafka: unknown key; allowed here: file, parallelism"],
        ),
        (
            plain("name: j", "name: j\npaths: x"),
            &[
                "2:1: paths: unknown key; allowed here: name, parallelism, max_parallelism, checkpoints, restart, source, steps, sink, dead_letters",
            ],
        ),
        (
            base("  - fliter: a > 1\n"),
            &[
                "4:5: steps[0].fliter: unknown key, did you mean `filter`? Allowed here: filter, enrich, parallelism",
            ],
        ),
        (
            base("  - filter: a > 1\n    enrich: {}\n"),
            &[
                "5:5: steps[0].enrich: there is `filter` already; what the step does is only one of filter, enrich",
            ],
        ),
        (
            enrich("      on_emtpy: drop\n"),
            &[
                "7:7: steps[0].enrich.on_emtpy: unknown key, did you mean `on_empty`? Allowed here: name, order, key, max_in_flight_per_key, capacity, timeout, attempt_timeout, retry, on_empty, on_failure, into, max_answer, call, parallelism",
            ],
        ),
        (
            enrich("      timeout: 1s\n      retry: {strategy: fixed-delay, initial: 1s, max_rtries: 2}\n"),
            &[
                "8:47: steps[0].enrich.retry.initial: is no key of the strategy fixed-delay; it takes max_retries, delay",
                "8:51: steps[0].enrich.retry.max_rtries: unknown key, did you mean `max_retries`? Allowed here: strategy, max_retries, delay, initial, max, multiplier, jitter",
            ],
        ),
        (enrich("      name: d\n"), &["7:7: steps[0].enrich: duplicate mapping key: name"]),
        (
            call("{htpp: {url: x}}"),
            &[
                "6:14: steps[0].enrich.call.htpp: unknown key, did you mean `http`? Allowed here: http, table, rust",
            ],
        ),
        (
            call("{rust: f, table: {}}"),
            &[
                "6:23: steps[0].enrich.call.table: there is `rust` already; what is asked is only one of http, table, rust",
            ],
        ),
    ]);
}

#[test]
fn contradictions_are_found() {
    refused(&[
        (
            plain("in.jsonl}", "in.jsonl, parallelism: 2}, parallelism: 3"),
            &["2:46: source.file.parallelism: contradicts the parallelism 3 beside it"],
        ),
        (
            enrich(
                "      timeout: 1s\n      retry: {strategy: exponential-delay, initial: 3s, max: 2s, multiplier: 0.5, jitter: 2}\n",
            ),
            &[
                "8:53: steps[0].enrich.retry.initial: the first pause is longer than the longest one (`initial` is above `max`)",
                "8:78: steps[0].enrich.retry.multiplier: expected a number of 1 or more, found the number 0.5",
                "8:91: steps[0].enrich.retry.jitter: expected a number from 0 to 1, found the number 2",
            ],
        ),
        (
            plain("out.jsonl}}", "out.jsonl}}\nrestart: {strategy: none, delay: 1s}"),
            &["6:34: restart.delay: is no key of the strategy none; it takes none"],
        ),
        (
            base("  - filter: {if: a > 1, on_failure: dead-letter}\n"),
            &[
                "4:37: steps[0].filter.on_failure: the job has no `dead_letters`; say where they go: dead_letters: {file: {path: dead.jsonl}}",
            ],
        ),
        (
            enrich("      retry: {strategy: fixed-delay}\n"),
            &[
                "7:14: steps[0].enrich.retry: a retry needs a `timeout`, the budget of a record for all attempts and pauses: timeout: 30s",
            ],
        ),
        (
            enrich("      timeout: none\n      retry: {strategy: fixed-delay}\n"),
            &[
                "8:14: steps[0].enrich.retry: a retry needs a `timeout`, the budget of a record for all attempts and pauses: timeout: 30s",
            ],
        ),
        (
            enrich("      order: keyed\n"),
            &["7:14: steps[0].enrich.order: keyed order needs a `key`: the field that holds it"],
        ),
        (
            enrich("      on_empty: dead-letter\n"),
            &[
                "7:17: steps[0].enrich.on_empty: the job has no `dead_letters`; say where they go: dead_letters: {file: {path: dead.jsonl}}",
            ],
        ),
        (
            enrich("  - enrich: {name: c, call: {rust: g}}\n"),
            &["7:20: steps[1].enrich.name: the name c is taken by steps[0]"],
        ),
        (
            plain("name: j", "name: j\nparallelism: 4\nmax_parallelism: 2"),
            &["2:14: parallelism: 4 is above max_parallelism, which is 2"],
        ),
        (
            plain("out.jsonl}", "out.jsonl}, parallelism: 2"),
            &[
                "5:46: sink.parallelism: a single file is written by one subtask, not by 2; end the path in `/` for a folder of parts",
            ],
        ),
        (
            plain("out.jsonl}}", "out.jsonl}}\ndead_letters: {file: {path: out.jsonl}}"),
            &["6:15: dead_letters: the dead letters cannot be written to where the records go"],
        ),
        (
            enrich("").replace("in.jsonl}", "in.jsonl, split: range}"),
            &[
                "2:40: source.file.split: files cannot be cut into ranges, as the step c keeps their order; write auto or file",
            ],
        ),
        (
            plain(
                "name: j",
                "name: j\nrestart: {strategy: fixed-delay, attempts: x, initial: 3s}\ncheckpoints: {interval: 0s, dir: \"ftp://x\"}",
            ),
            &[
                r#"2:44: restart.attempts: expected a whole number from 0 to 4294967295, found "x""#,
                "2:56: restart.initial: is no key of the strategy fixed-delay; it takes attempts, delay",
                r#"3:25: checkpoints.interval: expected a duration above zero, found "0s""#,
                "3:34: checkpoints.dir: checkpoints cannot be kept at ftp:// addresses; write a file://, s3://, gs:// or az:// URL, or a path",
            ],
        ),
        (
            plain("name: j", "name: j\ncheckpoints: {interval: 1s, dir: \"s3:///path\"}"),
            &["2:34: checkpoints.dir: names no bucket; write s3://BUCKET/PATH"],
        ),
    ]);
}

#[test]
fn missing_keys_say_what_belongs_there() {
    refused(&[
        (
            base("  - filter: {on_failure: drop}\n"),
            &["4:13: steps[0].filter.if: missing: the condition, a CEL expression"],
        ),
        (
            plain("out.jsonl}}", "out.jsonl}}\ncheckpoints: {}"),
            &[
                "6:14: checkpoints.interval: missing: from the start of one checkpoint to the next",
                "6:14: checkpoints.dir: missing: a URL such as file:///var/lib/tidegate/checkpoints",
            ],
        ),
        (
            enrich("      timeout: 1s\n      retry: {max_retries: 2}\n"),
            &["8:14: steps[0].enrich.retry.strategy: missing: one of none, fixed-delay, exponential-delay"],
        ),
        (call("{http: {}}"), &["6:20: steps[0].enrich.call.http.url: missing: the address that is asked"]),
        (call("{}"), &["6:13: steps[0].enrich.call: missing: what is asked, one of http, table, rust"]),
        (
            call("{table: {file: x}}"),
            &[
                "6:21: steps[0].enrich.call.table.key: missing: the field of a row that names it",
                "6:21: steps[0].enrich.call.table.by: missing: the field of a record that names its row",
            ],
        ),
        (plain("name: j\n", ""), &["1:1: name: missing: the job's name"]),
        (plain("source: {file: {path: in.jsonl}}\n", ""), &["1:1: source: missing: where records come from"]),
    ]);
}

#[test]
fn values_are_checked() {
    refused(&[
        (
            enrich("      order: keyed\n      key: 7\n      into: \"\"\n"),
            &[
                "8:12: steps[0].enrich.key: expected a text (put it into quotes), found the number 7",
                r#"9:13: steps[0].enrich.into: expected a text that is not empty, found """#,
            ],
        ),
        (
            enrich("      max_answer: 2GiB\n      max_in_flight_per_key: 0\n      attempt_timeout: 0s\n"),
            &[
                r#"7:19: steps[0].enrich.max_answer: expected a size from 1B to 1GiB, found "2GiB""#,
                "8:30: steps[0].enrich.max_in_flight_per_key: expected a whole number from 1 to 100000000, found the number 0",
                r#"9:24: steps[0].enrich.attempt_timeout: expected a duration above zero, found "0s""#,
            ],
        ),
        (
            plain("out.jsonl}", "out/.., overwrite: maybe}"),
            &[
                "5:21: sink.file.path: names a folder; end the path in `/` for a folder of parts, or name a file in it",
                r#"5:40: sink.file.overwrite: expected true or false, found "maybe""#,
            ],
        ),
        (
            plain("out.jsonl}}", "out.jsonl}}\nrestart: sometimes"),
            &[
                r#"6:10: restart: expected one of none, fixed-delay, failure-rate, exponential-delay, found "sometimes""#,
            ],
        ),
        (
            plain("name: j", "name: \"a\\nb\""),
            &["1:7: name: a name has at most 200 characters, no line ends and no spaces at its ends"],
        ),
        (
            base("  - 7\n"),
            &["4:5: steps[0]: expected a map with the keys filter, enrich, parallelism, found the number 7"],
        ),
        (
            base("  -\n"),
            &["4:4: steps[0]: expected a map with the keys filter, enrich, parallelism, found nothing"],
        ),
        (base("  {}\n"), &["4:3: steps: expected a list, found a map"]),
        (
            enrich("      capacity: 0\n"),
            &[
                "7:17: steps[0].enrich.capacity: expected a whole number from 1 to 100000000, found the number 0",
            ],
        ),
        (
            enrich("      capacity: many\n"),
            &[r#"7:17: steps[0].enrich.capacity: expected a whole number from 1 to 100000000, found "many""#],
        ),
        (
            enrich("      capacity: 1.5\n"),
            &[
                "7:17: steps[0].enrich.capacity: expected a whole number from 1 to 100000000, found the number 1.5",
            ],
        ),
        (
            enrich("      timeout: 0\n"),
            &[
                "7:16: steps[0].enrich.timeout: a record needs more time than none at all; write `none` to switch the timeout off",
            ],
        ),
        (
            enrich("      timeout: 5 parsecs\n"),
            &[
                r#"7:16: steps[0].enrich.timeout: expected a duration such as 250ms, 10s or 5m, or a number of milliseconds, found "5 parsecs""#,
            ],
        ),
        (
            enrich("      timeout: -5\n"),
            &[
                "7:16: steps[0].enrich.timeout: expected a duration such as 250ms, 10s or 5m, or a number of milliseconds, found the number -5",
            ],
        ),
        (
            enrich("      timeout: 1s\n      retry: {strategy: fixed-dleay}\n"),
            &[
                r#"8:25: steps[0].enrich.retry.strategy: expected one of none, fixed-delay, exponential-delay, found "fixed-dleay", did you mean `fixed-delay`?"#,
            ],
        ),
        (
            enrich("      order: sorted\n"),
            &[r#"7:14: steps[0].enrich.order: expected one of ordered, unordered, keyed, found "sorted""#],
        ),
        (
            enrich("      order: yes\n"),
            &[r#"7:14: steps[0].enrich.order: expected one of ordered, unordered, keyed, found "yes""#],
        ),
        (
            plain("name: j", "name: j\nparallelism: 0"),
            &["2:14: parallelism: expected a whole number from 1 to 128, found the number 0"],
        ),
        (
            plain("name: j", "name: 12"),
            &["1:7: name: expected a text (put it into quotes), found the number 12"],
        ),
        (
            plain("in.jsonl}", "in.jsonl, max_rate: 0, max_record: 5 bits, split: whole}"),
            &[
                "2:43: source.file.max_rate: expected a number of records per second above 0, found the number 0",
                r#"2:58: source.file.max_record: expected a size such as 64KiB or 10MB, or a number of bytes, found "5 bits""#,
                r#"2:73: source.file.split: expected one of auto, file, range, found "whole""#,
            ],
        ),
    ]);
}

#[test]
fn a_text_that_is_no_job_is_refused() {
    refused(&[
        (
            "".to_owned(),
            &[
                "1:1: expected a map with the keys name, parallelism, max_parallelism, checkpoints, restart, source, steps, sink, dead_letters, found nothing",
            ],
        ),
        (
            "- a\n".to_owned(),
            &[
                "1:1: expected a map with the keys name, parallelism, max_parallelism, checkpoints, restart, source, steps, sink, dead_letters, found a list",
            ],
        ),
        ("name: [\n".to_owned(), &["1:7: name[0]: unclosed bracket '['"]),
        ("name: a\nname: b\n".to_owned(), &["2:1: duplicate mapping key: name"]),
        ("name: a\n---\nname: b\n".to_owned(), &["3:1: multiple YAML documents detected"]),
        (
            "\tname: a\n".to_owned(),
            &[
                "1:2: steps: missing: what is done with each record, at least one `filter` or `enrich`",
                "1:2: source: missing: where records come from",
                "1:2: sink: missing: where records go",
            ],
        ),
        (
            "just text\n".to_owned(),
            &[
                r#"1:1: expected a map with the keys name, parallelism, max_parallelism, checkpoints, restart, source, steps, sink, dead_letters, found "just text""#,
            ],
        ),
        (
            "{}".to_owned(),
            &[
                "1:1: name: missing: the job's name",
                "1:1: steps: missing: what is done with each record, at least one `filter` or `enrich`",
                "1:1: source: missing: where records come from",
                "1:1: sink: missing: where records go",
            ],
        ),
        (
            "name: j\nsteps: []\n".to_owned(),
            &[
                "1:1: source: missing: where records come from",
                "1:1: sink: missing: where records go",
                "2:8: steps: there is no step; write at least one `filter` or `enrich`",
            ],
        ),
    ]);
}

#[test]
fn conditions_are_checked() {
    refused(&[
        (
            base("  - filter: a >\n"),
            &[
                "4:13: steps[0].filter: no CEL expression: mismatched input '<EOF>' (line 1, column 4 of the condition)",
            ],
        ),
        (
            base("  - filter: \"a >\"\n"),
            &[
                "4:13: steps[0].filter: no CEL expression: mismatched input '<EOF>' (line 1, column 4 of the condition)",
            ],
        ),
        (
            base("  - filter: a.startWith('x')\n"),
            &["4:13: steps[0].filter: unknown function `startWith`, did you mean `startsWith`?"],
        ),
        (
            base("  - filter: 7\n"),
            &["4:13: steps[0].filter: expected a text (put it into quotes), found the number 7"],
        ),
    ]);
}

#[test]
fn calls_are_checked() {
    refused(&[
        (
            call("{http: {url: \"http://h/{a\"}}"),
            &[
                "6:26: steps[0].enrich.call.http.url: no template: `{` at character 10 is not closed; write `{{` for the character itself",
            ],
        ),
        (
            call("{http: {url: \"h/{a}\"}}"),
            &[
                "6:26: steps[0].enrich.call.http.url: no URL: relative URL without a base; write one such as http://127.0.0.1:9900/customers/{id}",
            ],
        ),
        (
            call("{http: {url: \"ftp://h/{a}\"}}"),
            &[
                "6:26: steps[0].enrich.call.http.url: ftp:// is not spoken here; write an http:// or https:// address",
            ],
        ),
        (
            call("{http: {url: \"http:///a\"}}"),
            &["6:26: steps[0].enrich.call.http.url: no URL: after the scheme come `//` and the host"],
        ),
        (
            call("{http: {url: \"http://h:99999/a\"}}"),
            &[
                "6:26: steps[0].enrich.call.http.url: no URL: invalid port number; write one such as http://127.0.0.1:9900/customers/{id}",
            ],
        ),
        (
            call("{http: {url: \"http://h/a b\"}}"),
            &["6:26: steps[0].enrich.call.http.url: no URL: it has white space in it; write %20 for a space"],
        ),
        (
            call("{http: {url: \"http://h/../a\"}}"),
            &[
                "6:26: steps[0].enrich.call.http.url: the path segment `..` means another folder; leave it out",
            ],
        ),
        (
            call("{http: {url: 7}}"),
            &[
                "6:26: steps[0].enrich.call.http.url: expected a text (put it into quotes), found the number 7",
            ],
        ),
        (
            call("{http:}"),
            &[
                "6:18: steps[0].enrich.call.http: expected a map with the keys url, method, headers, body, success, empty, retryable, found nothing",
            ],
        ),
        (
            call(
                "{http: {url: \"http://h/\", success: 99, empty: [404, x], method: \"G T\", headers: {\"a b\": x}}}",
            ),
            &[
                "6:48: steps[0].enrich.call.http.success: expected HTTP statuses such as 404, 200-299 or [408, 500-599], found the number 99",
                r#"6:65: steps[0].enrich.call.http.empty[1]: expected HTTP statuses such as 404, 200-299 or [408, 500-599], found "x""#,
                "6:77: steps[0].enrich.call.http.method: expected an HTTP method such as GET or POST",
                "6:94: steps[0].enrich.call.http.headers.a b: no name of an HTTP header",
            ],
        ),
    ]);
}
