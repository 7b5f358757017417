//! Options of commands in the grammar of commons-cli, which zkCli's commands have: one dash, anywhere in the
//! command, short ones may be joined, `--` ends them.

use super::CommandError;

/// One option of a command.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without the dash.
    pub name: &'static str,
    /// Whether a value follows.
    pub valued: bool,
    /// What it does; shown in tables of options.
    pub about: &'static str,
}

/// An option without a value.
pub const fn flag(name: &'static str, about: &'static str) -> Flag {
    Flag {
        name,
        valued: false,
        about,
    }
}

/// An option with a value.
pub const fn valued(name: &'static str, about: &'static str) -> Flag {
    Flag {
        name,
        valued: true,
        about,
    }
}

/// What a command line holds: options and the words between them, the command's name left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    options: Vec<(&'static str, Option<String>)>,
    /// The words that are no options.
    pub words: Vec<String>,
}

impl Parsed {
    /// Whether the option was given.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(given, _)| *given == name)
    }

    /// Value of the option; of several the first.
    pub fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.options.iter().find(|(given, _)| *given == name)?;
        value.as_deref()
    }
}

/// The exception of commons-cli, as zkCli prints it.
fn exception(kind: &str, text: &str) -> CommandError {
    CommandError::failed(format!("org.apache.commons.cli.{kind}: {text}"))
}

/// The exception for a group of options of which one must be given, and none was.
pub fn missing_group(flags: &[Flag]) -> CommandError {
    let listed: Vec<String> = flags
        .iter()
        .map(|flag| format!("-{} {}", flag.name, flag.about))
        .collect();
    exception(
        "MissingOptionException",
        &format!("Missing required option: [{}]", listed.join(", ")),
    )
}

/// Fails when more than one option of a group was given.
pub fn at_most_one(parsed: &Parsed) -> Result<(), CommandError> {
    let Some((first, _)) = parsed.options.first() else {
        return Ok(());
    };
    match parsed.options.iter().find(|(name, _)| name != first) {
        None => Ok(()),
        Some((other, _)) => Err(exception(
            "AlreadySelectedException",
            &format!(
                "The option '{other}' was specified but an option from this group has already been selected: '{first}'"
            ),
        )),
    }
}

/// Parses the words behind a command's name.
pub fn parse(flags: &'static [Flag], args: &[String]) -> Result<Parsed, CommandError> {
    let mut parser = Parser {
        flags,
        parsed: Parsed::default(),
        open: None,
    };
    let mut args = args.iter();
    while let Some(token) = args.next() {
        if token == "--" {
            parser.parsed.words.extend(args.cloned());
            break;
        }
        parser.take(token)?;
    }
    parser.close()?;
    Ok(parser.parsed)
}

struct Parser {
    flags: &'static [Flag],
    parsed: Parsed,
    /// The option that waits for its value.
    open: Option<&'static str>,
}

impl Parser {
    fn find(&self, name: &str) -> Option<Flag> {
        self.flags.iter().copied().find(|flag| flag.name == name)
    }

    fn take(&mut self, token: &str) -> Result<(), CommandError> {
        if let Some(name) = self.open
            && self.is_value(token)
        {
            self.open = None;
            self.set_value(name, unquoted(token));
            return Ok(());
        }
        match token.strip_prefix('-') {
            None | Some("") => {
                self.parsed.words.push(token.to_owned());
                Ok(())
            }
            Some(rest) => self.take_option(token, rest),
        }
    }

    /// A word that looks like an option is a value only if no such option exists, or if it is a number.
    fn is_value(&self, token: &str) -> bool {
        let Some(rest) = token.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return true;
        };
        let name = rest.split('=').next().unwrap_or_default();
        let first: String = name.chars().take(1).collect();
        let is_option = self.find(name).is_some() || self.find(&first).is_some();
        !is_option || token.parse::<f64>().is_ok()
    }

    fn take_option(&mut self, token: &str, rest: &str) -> Result<(), CommandError> {
        if let Some(flag) = self.find(rest) {
            return self.give(flag);
        }
        if let Some((name, value)) = rest.split_once('=') {
            return match self.find(name) {
                Some(flag) if flag.valued && name.chars().count() == 1 => {
                    self.give(flag)?;
                    self.open = None;
                    self.set_value(flag.name, value);
                    Ok(())
                }
                _ => Err(unrecognized(token)),
            };
        }
        self.take_joined(token, rest)
    }

    /// `-sw`, or `-v3` with the value right behind.
    fn take_joined(&mut self, token: &str, rest: &str) -> Result<(), CommandError> {
        if rest.chars().count() == 1 {
            return Err(unrecognized(token));
        }
        let mut letters = rest.char_indices();
        while let Some((_, letter)) = letters.next() {
            let flag = self
                .find(letter.encode_utf8(&mut [0; 4]))
                .ok_or_else(|| unrecognized(token))?;
            self.give(flag)?;
            let trail = letters.as_str();
            if flag.valued && !trail.is_empty() {
                self.open = None;
                self.set_value(flag.name, trail);
                break;
            }
        }
        Ok(())
    }

    fn give(&mut self, flag: Flag) -> Result<(), CommandError> {
        self.close()?;
        self.parsed.options.push((flag.name, None));
        self.open = flag.valued.then_some(flag.name);
        Ok(())
    }

    fn set_value(&mut self, name: &str, value: &str) {
        if let Some(last) = self.parsed.options.last_mut().filter(|last| last.0 == name) {
            last.1 = Some(value.to_owned());
        }
    }

    fn close(&mut self) -> Result<(), CommandError> {
        match self.open.take() {
            None => Ok(()),
            Some(name) => Err(exception(
                "MissingArgumentException",
                &format!("Missing argument for option: {name}"),
            )),
        }
    }
}

fn unrecognized(token: &str) -> CommandError {
    exception(
        "UnrecognizedOptionException",
        &format!("Unrecognized option: {token}"),
    )
}

/// Without the double quotes around it, if there are none inside.
fn unquoted(token: &str) -> &str {
    token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|inner| !inner.contains('"'))
        .unwrap_or(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[
        flag("s", ""),
        flag("w", ""),
        valued("v", ""),
        valued("add", ""),
    ];

    fn parsed(line: &str) -> Result<Parsed, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(FLAGS, &args).map_err(|error| error.to_string())
    }

    #[test]
    fn options_stand_anywhere_and_may_be_joined() {
        for line in [
            "-s -v 3 /a d",
            "/a -s d -v 3",
            "/a d -sv3",
            "/a d -sv 3",
            "-v=3 /a -s d",
        ] {
            let found = parsed(line).expect(line);
            assert_eq!(found.words, ["/a", "d"], "{line}");
            assert!(found.has("s") && !found.has("w"), "{line}");
            assert_eq!(found.value("v"), Some("3"), "{line}");
        }
    }

    #[test]
    fn negative_numbers_are_values_of_options_but_no_words() {
        assert_eq!(parsed("-v -1 /a").expect("value").value("v"), Some("-1"));
        assert_eq!(
            parsed("/a -1"),
            Err(
                "org.apache.commons.cli.UnrecognizedOptionException: Unrecognized option: -1"
                    .to_owned()
            )
        );
        assert_eq!(parsed("-- /a -1").expect("ended").words, ["/a", "-1"]);
    }

    #[test]
    fn a_missing_value_is_told() {
        for line in ["/a -v", "-v -s /a", "-add"] {
            let text = parsed(line).expect_err(line);
            assert!(
                text.contains("MissingArgumentException: Missing argument for option: "),
                "{text}"
            );
        }
    }

    #[test]
    fn long_names_have_one_dash_too() {
        assert_eq!(
            parsed("-add x=y:1 -s").expect("long").value("add"),
            Some("x=y:1")
        );
        assert!(parsed("-add=x").is_err());
        assert!(parsed("--add x").is_err());
        assert_eq!(parsed("- /a").expect("lone dash").words, ["-", "/a"]);
    }
}
