//! Where records come from, and the small cores that every source needs: watermarks and a limit of the rate.

pub mod file;
pub mod rate;
pub mod watermark;
