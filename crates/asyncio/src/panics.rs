//! What a panic said.

use std::any::Any;

/// The text of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    said.unwrap_or("without a message").to_owned()
}
