//! The address of a job master.

use std::fmt;
use std::str::FromStr;

/// Where a job master's REST interface is: `http://127.0.0.1:8081`, with a path where a proxy stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMasterUrl {
    /// Without a slash at the end.
    text: String,
}

impl FromStr for JobMasterUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| Err(format!("{why}; expected http://HOST:PORT, such as http://127.0.0.1:8081"));
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = match reqwest::Url::parse(&whole) {
            Ok(url) => url,
            Err(error) => return wrong(&error.to_string()),
        };
        if url.scheme() != "http" {
            return wrong("a job master speaks http");
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return wrong("more than an address");
        }
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned() })
    }
}

impl JobMasterUrl {
    /// The URL of a path below `/v1`, its parts and the query percent-encoded.
    pub(super) fn at(&self, path: &[&str], query: &[(&str, &str)]) -> Option<reqwest::Url> {
        let mut url = reqwest::Url::parse(&self.text).ok()?;
        url.path_segments_mut().ok()?.pop_if_empty().push("v1").extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Some(url)
    }
}

impl fmt::Display for JobMasterUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_are_enough() {
        for text in ["127.0.0.1:8081", "http://127.0.0.1:8081", "http://127.0.0.1:8081/"] {
            let url: JobMasterUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), "http://127.0.0.1:8081");
        }
    }

    #[test]
    fn paths_are_added_behind_that_of_a_proxy_and_encoded() {
        let url: JobMasterUrl = "http://proxy/tidegate/".parse().unwrap();
        let at = url.at(&["jobs", "a/b"], &[("savepointPath", "/s p")]).unwrap();
        assert_eq!(at.as_str(), "http://proxy/tidegate/v1/jobs/a%2Fb?savepointPath=%2Fs+p");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "https://a:1", "http://", "http://a b", "http://u@a:1", "http://a:1?x=y", "a:123456"]
        {
            assert!(text.parse::<JobMasterUrl>().is_err(), "{text}");
        }
    }
}
