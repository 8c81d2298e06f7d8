//! The rules of fact A1, as pure functions of the environment and the names in the data folder.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The variables that decide. An empty variable counts as unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `OPENCODE_DB`.
    pub opencode_db: Option<OsString>,
    /// `OPENCODE_CHANNEL`: the channel of the OpenCode in use, where the person says it. OpenCode itself has it compiled in.
    pub opencode_channel: Option<OsString>,
    /// `OPENCODE_DISABLE_CHANNEL_DB`.
    pub opencode_disable_channel_db: Option<OsString>,
    /// `XDG_DATA_HOME`.
    pub xdg_data_home: Option<OsString>,
    /// `XDG_STATE_HOME`.
    pub xdg_state_home: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            opencode_db: variable("OPENCODE_DB"),
            opencode_channel: variable("OPENCODE_CHANNEL"),
            opencode_disable_channel_db: variable("OPENCODE_DISABLE_CHANNEL_DB"),
            xdg_data_home: variable("XDG_DATA_HOME"),
            xdg_state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
        }
    }

    /// The folders that follow from the variables.
    ///
    /// # Errors
    /// [`TargetError::NoHome`].
    pub fn places(&self) -> Result<StandardPlaces, TargetError> {
        let base =
            |variable: Option<&OsString>, below_home: &str| match (set(variable), set(self.home.as_ref())) {
                (Some(folder), _) => Ok(PathBuf::from(folder)),
                (None, Some(home)) => Ok(Path::new(home).join(below_home)),
                (None, None) => Err(TargetError::NoHome),
            };
        Ok(StandardPlaces {
            data_folder: base(self.xdg_data_home.as_ref(), ".local/share")?.join("opencode"),
            state_folder: base(self.xdg_state_home.as_ref(), ".local/state")?.join("headwater"),
        })
    }
}

fn set(variable: Option<&OsString>) -> Option<&OsStr> {
    variable.map(OsString::as_os_str).filter(|value| !value.is_empty())
}

/// Folders by the XDG rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardPlaces {
    /// `$XDG_DATA_HOME/opencode`, else `~/.local/share/opencode`.
    pub data_folder: PathBuf,
    /// `$XDG_STATE_HOME/headwater`, else `~/.local/state/headwater`.
    pub state_folder: PathBuf,
}

/// Why a database is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// `OPENCODE_DB` names it.
    NamedByEnvironment,
    /// It is the file of the channel that `OPENCODE_CHANNEL` names.
    Channel,
    /// It is the file of the standard channels.
    Standard,
    /// The standard file does not exist, and it is the only one that does.
    OnlyOne,
}

/// The default database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its path.
    pub path: PathBuf,
    /// Why it is that one.
    pub reason: Reason,
}

/// Why no default follows from the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// `OPENCODE_DB` is `:memory:`.
    #[error("OPENCODE_DB names a database in memory, which no other program can open")]
    InMemory,
    /// Neither `HOME` nor the variable of the folder is set.
    #[error("neither HOME nor XDG_DATA_HOME and XDG_STATE_HOME are set")]
    NoHome,
}

/// Which database is used when none is named. `names` are the names in the data folder, sorted.
///
/// # Errors
/// [`TargetError`].
pub fn target(environment: &Environment, names: &[OsString]) -> Result<Target, TargetError> {
    let data_folder = environment.places()?.data_folder;
    if let Some(named) = set(environment.opencode_db.as_ref()) {
        if named == ":memory:" {
            return Err(TargetError::InMemory);
        }
        // `join` takes an absolute path as it is.
        return Ok(Target { path: data_folder.join(named), reason: Reason::NamedByEnvironment });
    }
    let one_file = set(environment.opencode_disable_channel_db.as_ref())
        .is_some_and(|value| value == "1" || value == "true");
    let channel = set(environment.opencode_channel.as_ref()).filter(|_| !one_file);
    if let Some(channel) = channel {
        let name = channel_file_name(&channel.to_string_lossy());
        return Ok(Target { path: data_folder.join(name), reason: Reason::Channel });
    }
    let mut databases = names.iter().filter(|name| name.to_str().is_some_and(is_database_name));
    let reason_and_name = match (databases.next(), databases.next()) {
        (Some(only), None) if only != STANDARD && !one_file => (Reason::OnlyOne, only.as_os_str()),
        _ => (Reason::Standard, OsStr::new(STANDARD)),
    };
    Ok(Target { path: data_folder.join(reason_and_name.1), reason: reason_and_name.0 })
}

const STANDARD: &str = "opencode.db";

/// The file name of a channel: `latest`, `beta` and `prod` share `opencode.db`; in any other name what is not a letter, a digit, `.`,
/// `_` or `-` becomes `-`, one for each UTF-16 unit as OpenCode's regular expression counts.
pub fn channel_file_name(channel: &str) -> String {
    if matches!(channel, "latest" | "beta" | "prod") {
        return STANDARD.to_owned();
    }
    let mut name = String::from("opencode-");
    for character in channel.chars() {
        if character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-') {
            name.push(character);
        } else {
            name.extend(std::iter::repeat_n('-', character.len_utf16()));
        }
    }
    name.push_str(".db");
    name
}

/// Whether a name in the data folder is that of a database of some channel.
pub fn is_database_name(name: &str) -> bool {
    let channel = name.strip_prefix("opencode-").and_then(|rest| rest.strip_suffix(".db"));
    name == STANDARD || channel.is_some_and(|channel| channel_file_name(channel) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "every use is a field that may be unset")]
    fn os(text: &str) -> Option<OsString> {
        Some(text.into())
    }

    #[test]
    fn the_default_follows_the_rules_of_opencode() {
        let home = Environment { home: os("/h"), ..Environment::default() };
        let with = |change: fn(&mut Environment)| {
            let mut environment = home.clone();
            change(&mut environment);
            environment
        };
        let standard = "/h/.local/share/opencode/opencode.db";
        let dev: &[&str] = &["log", "opencode-dev.db", "opencode-dev.db-wal"];
        for (name, environment, names, path, reason) in [
            ("plain", home.clone(), &[][..], standard, Reason::Standard),
            (
                "relative",
                with(|e| e.opencode_db = os("rel.db")),
                &[],
                "/h/.local/share/opencode/rel.db",
                Reason::NamedByEnvironment,
            ),
            ("absolute", with(|e| e.opencode_db = os("/x/y.db")), &[], "/x/y.db", Reason::NamedByEnvironment),
            ("empty variable", with(|e| e.opencode_db = os("")), &[], standard, Reason::Standard),
            (
                "xdg",
                with(|e| e.xdg_data_home = os("/data")),
                &[],
                "/data/opencode/opencode.db",
                Reason::Standard,
            ),
            ("empty xdg", with(|e| e.xdg_data_home = os("")), &[], standard, Reason::Standard),
            (
                "channel",
                with(|e| e.opencode_channel = os("a/b c")),
                &[],
                "/h/.local/share/opencode/opencode-a-b-c.db",
                Reason::Channel,
            ),
            ("beta", with(|e| e.opencode_channel = os("beta")), dev, standard, Reason::Channel),
            ("only one", home.clone(), dev, "/h/.local/share/opencode/opencode-dev.db", Reason::OnlyOne),
            ("two", home.clone(), &["opencode-a.db", "opencode-b.db"], standard, Reason::Standard),
            ("both", home.clone(), &["opencode-a.db", "opencode.db"], standard, Reason::Standard),
            (
                "channels disabled",
                with(|e| (e.opencode_disable_channel_db, e.opencode_channel) = (os("true"), os("dev"))),
                dev,
                standard,
                Reason::Standard,
            ),
            (
                "disabling off",
                with(|e| (e.opencode_disable_channel_db, e.opencode_channel) = (os("0"), os("dev"))),
                &[],
                "/h/.local/share/opencode/opencode-dev.db",
                Reason::Channel,
            ),
        ] {
            let names: Vec<OsString> = names.iter().map(Into::into).collect();
            assert_eq!(target(&environment, &names), Ok(Target { path: path.into(), reason }), "{name}");
        }
    }

    #[test]
    fn what_no_file_can_be_is_refused() {
        let memory = Environment { home: os("/h"), opencode_db: os(":memory:"), ..Environment::default() };
        assert_eq!(target(&memory, &[]), Err(TargetError::InMemory));
        assert_eq!(target(&Environment::default(), &[]), Err(TargetError::NoHome));
        let only_data = Environment { xdg_data_home: os("/d"), ..Environment::default() };
        assert_eq!(target(&only_data, &[]), Err(TargetError::NoHome));
    }

    #[test]
    fn channel_names_become_file_names() {
        for (channel, expected) in [
            ("latest", "opencode.db"),
            ("prod", "opencode.db"),
            ("Latest", "opencode-Latest.db"),
            ("feature/x@1", "opencode-feature-x-1.db"),
            ("a.b_c-d", "opencode-a.b_c-d.db"),
            ("数", "opencode--.db"),
            ("😀", "opencode---.db"),
        ] {
            assert_eq!(channel_file_name(channel), expected);
        }
    }

    #[test]
    fn only_names_that_a_channel_can_have_are_databases() {
        for (name, expected) in [
            ("opencode.db", true),
            ("opencode-dev.db", true),
            ("opencode-.db", true),
            ("opencode-a b.db", false),
            ("opencode-latest.db", false),
            ("opencode.db-wal", false),
            ("opencode.db.bak", false),
            ("other.db", false),
        ] {
            assert_eq!(is_database_name(name), expected, "{name}");
        }
    }
}
