//! The four names of this program: what it is follows from the name that it was started under.
//!
//! A whole cluster is in here, for `tidegate local`. So an image needs one program and three links to it, instead of the
//! same libraries four times.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use entrypoint::Role;
use taskexecutor::TaskExecutor;

/// The server whose name this is.
pub(crate) fn server(started_as: Option<&OsStr>) -> Option<Role> {
    let name = Path::new(started_as?).file_name()?.to_str()?;
    Role::ALL.iter().copied().find(|role| role.name() == name)
}

/// The program of that name.
pub(crate) fn serve(role: Role) -> ExitCode {
    match role {
        Role::ResourceManager => entrypoint::run_server(role, resourcemanager::server::run),
        Role::JobMaster => entrypoint::run_server(role, jobmaster::server::run),
        Role::TaskExecutor => TaskExecutor::builder().run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_what_the_program_is_wherever_it_lies() {
        let of = |name: &str| server(Some(OsStr::new(name)));
        assert_eq!(of("/bin/jobmaster"), Some(Role::JobMaster));
        assert_eq!(of("taskexecutor"), Some(Role::TaskExecutor));
        assert_eq!(of("./resourcemanager"), Some(Role::ResourceManager));
        for name in ["tidegate", "/jobmaster/tidegate", "jobmaster-2", ""] {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(server(None), None);
    }
}
