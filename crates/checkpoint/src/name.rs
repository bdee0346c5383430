//! Which names an object can have.

/// Why a name is none, or nothing: names come from this program, so a wrong one is a mistake in it, or a handle that was
/// tampered with. Names that begin with a dot are kept for what a store writes for itself.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the name is empty");
    }
    for part in name.split('/') {
        if part.is_empty() {
            return Err("a part of the name is empty");
        }
        if part.starts_with('.') {
            return Err("a part of the name begins with a dot");
        }
        if part.contains(['\0', '\\']) {
            return Err("a part of the name has a character that no name has");
        }
    }
    Ok(())
}

/// Whether `name` lies below `folder`, at any depth.
pub(crate) fn is_below(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_of_plain_parts() {
        for name in ["a", "1f/chk-7/metadata", "a/b.c", "ä/[x]"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.b", "a\\b", "a\0b"] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_folder_is_a_whole_part() {
        assert!(is_below("1f/chk-7/metadata", "1f"));
        assert!(is_below("1f/chk-7/metadata", "1f/chk-7"));
        assert!(!is_below("1f/chk-70/metadata", "1f/chk-7"));
        assert!(!is_below("1f", "1f"));
    }
}
