//! Calls: what is asked about each record.

use url::Url;

use super::node::Value;
use super::section::{Item, Section};
use crate::options::{CallOptions, HttpOptions, StatusSet, TableOptions};
use crate::template::{Template, dot_segment};

pub(super) fn call(item: &Item<'_>) -> Option<CallOptions> {
    const KINDS: &[&str] = &["http", "table", "rust"];
    let section = item.section(KINDS)?;
    let (kind, inner) = section.kind(KINDS, "what is asked")?;
    match kind {
        "http" => http(&inner).map(CallOptions::Http),
        "table" => table(&inner).map(CallOptions::Table),
        _ => inner.text().map(|name| CallOptions::Rust(name.to_owned())),
    }
}

fn table(item: &Item<'_>) -> Option<TableOptions> {
    let section = item.section(&["file", "key", "by"])?;
    let text = |key: &str, what: &str| section.require(key, what).and_then(|item| item.text());
    let file = text("file", "the file with a row on each line");
    let key = text("key", "the field of a row that names it");
    let by = text("by", "the field of a record that names its row");
    Some(TableOptions { file: file?.into(), key: key?.to_owned(), by: by?.to_owned() })
}

fn http(item: &Item<'_>) -> Option<HttpOptions> {
    let section = item.section(&["url", "method", "headers", "body", "success", "empty", "retryable"])?;
    let url = section.require("url", "the address that is asked").and_then(|item| url(&item));
    let method = match section.get("method") {
        Some(item) => method(&item),
        None => Some("GET".to_owned()),
    };
    let headers = section.get("headers").map_or(Some(Vec::new()), |item| headers(&item));
    let body = section.get("body").and_then(|item| item.template());
    let success = statuses(&section, "success", &[(200, 299)]);
    let empty = statuses(&section, "empty", &[(204, 204), (404, 404)]);
    let retryable = statuses(&section, "retryable", &[(408, 408), (429, 429), (500, 599)]);
    Some(HttpOptions {
        url: url?,
        method: method?,
        headers: headers?,
        body,
        success: success?,
        empty: empty?,
        retryable: retryable?,
    })
}

fn url(item: &Item<'_>) -> Option<Template> {
    let template = item.template()?;
    // A digit may stand in a host, a port, a path and a query alike.
    let sample = template.with_each("1");
    let problem = match Url::parse(&sample) {
        Err(error) => {
            Some(format!("no URL: {error}; write one such as http://127.0.0.1:9900/customers/{{id}}"))
        }
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some(format!("{}:// is not spoken here; write an http:// or https:// address", url.scheme()))
        }
        Ok(_) if sample.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Some("no URL: it has white space in it; write %20 for a space".to_owned())
        }
        Ok(_) if !has_authority(&sample) => {
            Some("no URL: after the scheme come `//` and the host".to_owned())
        }
        Ok(_) => dot_segment(&sample)
            .map(|segment| format!("the path segment `{segment}` means another folder; leave it out")),
    };
    match problem {
        Some(problem) => {
            item.note(problem);
            None
        }
        None => Some(template),
    }
}

/// URL parsers are lenient with `http:host` and `http:///host`.
fn has_authority(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| !rest.starts_with(['/', '\\', '?', '#']))
}

/// RFC 9110: a token.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn method(item: &Item<'_>) -> Option<String> {
    let method = item.text()?.to_ascii_uppercase();
    if !is_token(&method) || method == "CONNECT" {
        item.note("expected an HTTP method such as GET or POST");
        return None;
    }
    Some(method)
}

fn headers(item: &Item<'_>) -> Option<Vec<(String, Template)>> {
    let mut headers = Vec::new();
    for (name, place, value) in item.open_section()?.entries() {
        if !is_token(name) {
            value.findings.note(place, &value.path, "no name of an HTTP header");
        }
        if let Some(template) = value.template() {
            if template.with_each("").chars().any(|c| c.is_control() && c != '\t') {
                value.note("a header's value stands on one line");
            }
            headers.push((name.to_owned(), template));
        }
    }
    Some(headers)
}

fn statuses(section: &Section<'_>, key: &str, default: &[(u16, u16)]) -> Option<StatusSet> {
    let Some(item) = section.get(key) else { return Some(StatusSet(default.to_vec())) };
    let ranges = match &item.node.value {
        Value::List(_) => {
            let ranges = item.list()?.iter().map(status_ranges).collect::<Option<Vec<_>>>()?;
            ranges.concat()
        }
        _ => status_ranges(&item)?,
    };
    Some(StatusSet(ranges))
}

/// `404`, `200-299` or `408, 500-599`.
fn status_ranges(item: &Item<'_>) -> Option<Vec<(u16, u16)>> {
    let ranges = match &item.node.value {
        Value::Whole(status) => status_number(&status.to_string()).map(|status| vec![(status, status)]),
        Value::Text(text) => text.split(',').map(status_range).collect(),
        _ => None,
    };
    if ranges.is_none() {
        let found = item.node.describe();
        item.note(format!("expected HTTP statuses such as 404, 200-299 or [408, 500-599], found {found}"));
    }
    ranges
}

fn status_range(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (status_number(from)?, status_number(to)?);
    (from <= to).then_some((from, to))
}

fn status_number(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|status| (100..=599).contains(status))
}
