//! `help`.

use serde_json::{Value, json};

use super::usage::{self, COMMANDS, Spec};
use super::{CommandError, Output, Paint};

/// Column at which descriptions start.
const COLUMN: usize = 24;
const TAIL: &str = "\
Words are separated by blanks; \"two words\" or 'two words' are one. -- ends the options, as in: set /a -- -1
Ctrl-C ends a running command, Ctrl-D or quit leave. Lines that begin with # are passed over.
help COMMAND tells the options of one command.";

/// Shows all commands, or one.
pub fn show(args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let Some(name) = args.first() else {
        return show_all(out);
    };
    let spec = usage::find(name).ok_or_else(|| {
        CommandError::failed(format!(
            "There is no command {name}. Type help for the list of commands"
        ))
    })?;
    if out.wants_json() {
        return out.json(&to_json(spec));
    }
    out.line(format!("{} {}", spec.name, spec.arguments).trim_end())?;
    out.line(spec.about)?;
    match [spec.table, spec.options].concat().as_slice() {
        [] => Ok(()),
        options => out.line(&usage::table(options)),
    }
}

fn to_json(spec: &Spec) -> Value {
    json!({ "command": spec.name, "arguments": spec.arguments, "about": spec.about, "writes": spec.writes })
}

fn show_all(out: &mut Output) -> Result<(), CommandError> {
    if out.wants_json() {
        let commands: Vec<Value> = COMMANDS.iter().map(to_json).collect();
        return out.json(&json!({ "commands": commands }));
    }
    for (title, writes) in [
        ("Commands that show:", false),
        ("Commands that change something:", true),
    ] {
        let title = out.paint(Paint::Strong, title);
        out.line(&title)?;
        for spec in COMMANDS.iter().filter(|spec| spec.writes == writes) {
            let name = out.paint(Paint::Path, spec.name).into_owned();
            let gap = " ".repeat(COLUMN.saturating_sub(spec.name.len()));
            out.line(&format!("  {name}{gap}{}", spec.about))?;
        }
        out.line("")?;
    }
    out.line(TAIL)
}
