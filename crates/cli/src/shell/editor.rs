//! The interactive form: line editing, history, completion, colours of the prompt.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use quenda_client::Client;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use tokio::runtime::Handle;

use super::output::SharedStreams;
use super::prompt::Prompt;
use super::shell::{Next, Shell};
use super::{CommandError, Session, path, tokens, usage};

/// Lines kept from session to session.
const HISTORY_LINES: usize = 1000;
/// How long completion waits for the server.
const PATIENCE: Duration = Duration::from_secs(1);
/// Children of a znode above which its paths are not completed: fetching them would hold up the typing.
const MAX_CHILDREN: i32 = 50_000;
/// Candidates offered at once.
const MAX_CANDIDATES: usize = 1000;
/// Commands whose lines are not kept, for the secrets in them.
const SECRET: [&str; 1] = ["addauth"];

/// Reads commands from a terminal until `quit` or Ctrl-D, and returns the exit code.
pub async fn talk(mut shell: Shell, streams: &SharedStreams, colour: bool) -> u8 {
    let mut editor = match editor() {
        Ok(editor) => editor,
        Err(error) => {
            shell.out().complain(&format!(
                "Cannot edit lines on this terminal ({error}): pass commands by a pipe, as in: echo 'ls /' | quenda shell"
            ));
            return 1;
        }
    };
    if let Err(error) = greet(&mut shell) {
        return error.exit_code();
    }
    let prompt = Prompt::new(streams.clone(), colour);
    shell.out().set_prompt(prompt.clone());
    let file = history_file();
    if let Some(file) = &file {
        // The first time there is none.
        drop(editor.load_history(file));
    }
    shell.settle().await;
    loop {
        editor.set_helper(Some(Assistant {
            handle: Handle::current(),
            session: shell.session().clone(),
            zkcli: shell.manner().zkcli,
            prompt: prompt.clone(),
        }));
        let text = prompt.start(shell.session(), shell.count());
        // A thread that may wait, while this one keeps the session alive.
        let typed = tokio::task::spawn_blocking(move || {
            let line = editor.readline(&text);
            (editor, line)
        })
        .await;
        prompt.end();
        let line;
        (editor, line) = match typed {
            Ok(typed) => typed,
            Err(_) => return 1,
        };
        match line {
            Ok(line) => {
                // Pasted text may hold several.
                for line in line.lines() {
                    keep(&mut editor, file.as_ref(), line);
                    if shell.line(line).await == Next::End {
                        return shell.code();
                    }
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => {
                shell
                    .out()
                    .complain(&format!("Cannot read from the terminal: {error}"));
                break;
            }
        }
    }
    shell.finish().await
}

fn greet(shell: &mut Shell) -> Result<(), CommandError> {
    if shell.manner().zkcli {
        shell.welcome(true)?;
    } else if !shell.manner().quiet {
        shell.out().line("Type help for the list of commands")?;
    }
    shell.out().flush()
}

type LineEditor = Editor<Assistant, FileHistory>;

fn editor() -> rustyline::Result<LineEditor> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        // Prompt and line pass through here even without colours.
        .color_mode(ColorMode::Forced)
        .max_history_size(HISTORY_LINES)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .build();
    Editor::with_config(config)
}

fn keep(editor: &mut LineEditor, file: Option<&PathBuf>, line: &str) {
    if !may_be_kept(line) {
        return;
    }
    let added = editor.add_history_entry(line);
    if let (Ok(true), Some(file)) = (added, file) {
        // A history that cannot be kept is no reason to refuse the command.
        drop(editor.append_history(file));
    }
}

/// Whether the line holds a command, and no secrets. The command's word may stand in quotes.
fn may_be_kept(line: &str) -> bool {
    let words = tokens::split(line);
    words
        .first()
        .is_some_and(|command| !SECRET.contains(&command.as_str()))
}

/// QUENDA_SHELL_HISTORY, or a file where the system keeps such; an empty name keeps none.
fn history_file() -> Option<PathBuf> {
    if let Some(file) = std::env::var_os("QUENDA_SHELL_HISTORY") {
        return (!file.is_empty()).then(|| PathBuf::from(file));
    }
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(PathBuf::from(home).join(".local/state"))
        })?;
    let folder = state.join("quenda");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("shell_history"))
}

/// What the editor asks while a line is typed.
struct Assistant {
    handle: Handle,
    session: Session,
    zkcli: bool,
    prompt: Prompt,
}

impl Helper for Assistant {}
impl Validator for Assistant {}
impl Hinter for Assistant {
    type Hint = String;
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let (start, quote) = last_word(typed);
        let word = &typed[start..];
        let candidates = if word.starts_with('/') {
            self.paths(word, quote)
        } else {
            self.words(&typed[..start], word)
        };
        Ok((start, candidates))
    }
}

impl Assistant {
    /// Commands in the first place and behind `help`, options behind a dash.
    fn words(&self, before: &str, word: &str) -> Vec<Pair> {
        let mut earlier = before.split_whitespace();
        let command = earlier.next();
        let known = || {
            usage::COMMANDS
                .iter()
                .filter(|spec| spec.in_zkcli || !self.zkcli)
        };
        let texts: Vec<String> = match command {
            None | Some("help") => known().map(|spec| spec.name.to_owned()).collect(),
            Some(command) if word.starts_with('-') => usage::find(command)
                .map(|spec| spec.flags())
                .unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        texts
            .into_iter()
            .filter(|text| text.starts_with(word))
            .map(|text| pair(text.clone(), text + " "))
            .collect()
    }

    fn paths(&self, word: &str, quote: Option<char>) -> Vec<Pair> {
        let end = word.rfind('/').unwrap_or(0);
        let parent = if end == 0 { "/" } else { &word[..end] };
        let prefix = &word[end + 1..];
        let client = self.session.client().clone();
        let mut names = self
            .handle
            .block_on(async { tokio::time::timeout(PATIENCE, names(&client, parent)).await })
            .unwrap_or_default();
        names.retain(|name| name.starts_with(prefix));
        path::sort(&mut names);
        names.truncate(MAX_CANDIDATES);
        names
            .into_iter()
            .map(|name| {
                let whole = path::child(parent, &name);
                pair(name, quoted(whole, quote))
            })
            .collect()
    }
}

fn pair(display: String, replacement: String) -> Pair {
    Pair {
        display,
        replacement,
    }
}

/// Names of the children; none where the server does not tell or they are too many.
async fn names(client: &Client, parent: &str) -> Vec<String> {
    match client.exists(parent, false).await {
        Ok(Some(metadata)) if metadata.num_children <= MAX_CHILDREN => {}
        Ok(_) | Err(_) => return Vec::new(),
    }
    client
        .get_children(parent, false)
        .await
        .map(|(names, _)| names)
        .unwrap_or_default()
}

/// Where the word at the end of the line starts, behind its quote if it has one.
fn last_word(typed: &str) -> (usize, Option<char>) {
    let mut start = 0;
    let mut quote = None;
    let mut at_start = true;
    for (index, letter) in typed.char_indices() {
        match quote {
            Some(open) if letter == open => {
                quote = None;
                start = index + letter.len_utf8();
                at_start = true;
            }
            Some(_) => {}
            None if letter.is_whitespace() => {
                start = index + letter.len_utf8();
                at_start = true;
            }
            None if at_start && (letter == '"' || letter == '\'') => {
                quote = Some(letter);
                start = index + letter.len_utf8();
            }
            None => at_start = false,
        }
    }
    (start, quote)
}

/// A path with blanks in quotes, unless a quote is open already.
fn quoted(path: String, open: Option<char>) -> String {
    if open.is_some() || !path.contains(char::is_whitespace) {
        return path;
    }
    let quote = if path.contains('"') { '\'' } else { '"' };
    format!("{quote}{path}{quote}")
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, _: &'p str, _: bool) -> Cow<'b, str> {
        self.prompt.current().into()
    }

    fn highlight<'l>(&self, line: &'l str, cursor: usize) -> Cow<'l, str> {
        self.prompt.typed(line, cursor)
    }

    /// Every key shows the line anew, so that [`Prompt`] knows of it.
    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_end_is_found_behind_quotes() {
        let cases = [
            ("", (0, None)),
            ("get /a", (4, None)),
            ("get ", (4, None)),
            ("get \"/a b", (5, Some('"'))),
            ("set /a 'x y' /b", (13, None)),
            ("set b\"c d", (8, None)),
        ];
        for (typed, expected) in cases {
            assert_eq!(last_word(typed), expected, "{typed}");
        }
    }

    #[test]
    fn lines_with_secrets_are_not_kept() {
        assert!(may_be_kept("get /addauth"));
        for line in [
            "addauth digest u:p",
            "  \"addauth\" digest u:p",
            "'addauth'digest u:p",
            "\"addauth digest u:p",
            " ",
        ] {
            assert!(!may_be_kept(line), "{line}");
        }
    }

    #[test]
    fn paths_with_blanks_are_put_in_quotes() {
        assert_eq!(quoted("/a".to_owned(), None), "/a");
        assert_eq!(quoted("/a b".to_owned(), None), "\"/a b\"");
        assert_eq!(quoted("/a \"b".to_owned(), None), "'/a \"b'");
        assert_eq!(quoted("/a b".to_owned(), Some('"')), "/a b");
    }
}
