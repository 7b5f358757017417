//! The line that is being typed: what comes by itself is printed above it, and its prompt tells the state of the moment.
//!
//! The line editor has means of its own for that, which keep keys from being read that arrive together, as pasted text
//! does. So this knows what the editor shows, takes it off the screen, prints, and puts it back where it was; the editor
//! finds the cursor where it left it.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unicode_width::UnicodeWidthStr;

use super::output::{Line, SharedStreams, terminal_width};
use super::{Session, usage};

/// What the editor shows.
#[derive(Debug, Default)]
struct Shown {
    /// Whether a line is being typed.
    typing: bool,
    session: Option<Session>,
    count: usize,
    /// The prompt as the editor knows it.
    prompt: String,
    line: String,
    /// Byte of the line at which the cursor is.
    cursor: usize,
}

/// The line that is being typed. Clones share it.
#[derive(Debug, Clone)]
pub struct Prompt {
    shown: Arc<Mutex<Shown>>,
    streams: SharedStreams,
    colour: bool,
}

impl Prompt {
    /// No line yet.
    pub fn new(streams: SharedStreams, colour: bool) -> Self {
        Prompt {
            shown: Arc::default(),
            streams,
            colour,
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line is about to be typed; gives its prompt.
    pub fn start(&self, session: &Session, count: usize) -> String {
        let prompt = text(session, count);
        *self.shown() = Shown {
            typing: true,
            session: Some(session.clone()),
            count,
            prompt: prompt.clone(),
            line: String::new(),
            cursor: 0,
        };
        prompt
    }

    /// The line has been typed.
    pub fn end(&self) {
        self.shown().typing = false;
    }

    /// What the editor shows now; gives the line with its colours.
    pub fn typed<'l>(&self, line: &'l str, cursor: usize) -> Cow<'l, str> {
        let mut shown = self.shown();
        line.clone_into(&mut shown.line);
        shown.cursor = cursor.min(line.len());
        self.coloured_line(line)
    }

    /// The prompt with the state of the moment and its colour.
    pub fn current(&self) -> String {
        self.coloured_prompt(&self.shown())
    }

    /// Prints what comes by itself: above the line if one is being typed.
    pub fn announce(&self, Line(text): &Line) {
        let shown = self.shown();
        let text = if shown.typing {
            self.around(&shown, text)
        } else {
            text.clone()
        };
        let mut streams = self.streams.lock();
        // What cannot be printed on this terminal can be told nowhere.
        drop(
            streams
                .write(text.as_bytes())
                .and_then(|()| streams.flush()),
        );
    }

    /// The text, with the line taken away before and put back behind it.
    fn around(&self, shown: &Shown, text: &str) -> String {
        let columns = terminal_width();
        let prompt = shown.prompt.width();
        let before = prompt + shown.line[..shown.cursor].width();
        let whole = prompt + shown.line.width();
        let mut out = up(before / columns);
        out.push_str("\r\x1b[J");
        out.push_str(&text.replace('\n', "\r\n"));
        out.push_str(&self.coloured_prompt(shown));
        out.push_str(&self.coloured_line(&shown.line));
        if whole > 0 && whole.is_multiple_of(columns) {
            // The terminal goes to the next row with the next letter only; the editor counts it at once.
            out.push_str("\r\n");
        }
        out.push_str(&up(whole / columns - before / columns));
        out.push('\r');
        if !before.is_multiple_of(columns) {
            // Writing to a string does not fail.
            let _written = write!(out, "\x1b[{}C", before % columns);
        }
        out
    }

    fn coloured_prompt(&self, shown: &Shown) -> String {
        let Some(session) = &shown.session else {
            return shown.prompt.clone();
        };
        let prompt = fitted(&text(session, shown.count), &shown.prompt);
        if !self.colour {
            return prompt;
        }
        let colour = match session.state_name() {
            "CONNECTED" => "32",
            "CONNECTING" | "CONNECTEDREADONLY" => "33",
            _ => "31",
        };
        format!("\x1b[{colour}m{prompt}\x1b[0m")
    }

    fn coloured_line<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let command = line.split(char::is_whitespace).next().unwrap_or_default();
        if !self.colour || usage::find(command).is_none() {
            return line.into();
        }
        format!("\x1b[1m{command}\x1b[0m{}", &line[command.len()..]).into()
    }
}

/// zkCli's prompt.
pub fn text(session: &Session, count: usize) -> String {
    format!(
        "[zk: {}({}) {count}] ",
        session.servers(),
        session.state_name()
    )
}

fn up(rows: usize) -> String {
    if rows == 0 {
        String::new()
    } else {
        format!("\x1b[{rows}A")
    }
}

/// The prompt of the moment in the width of the one that the editor knows; that one if it does not fit.
fn fitted(current: &str, known: &str) -> String {
    let (width, room) = (current.width(), known.width());
    if width <= room {
        return format!("{current}{}", " ".repeat(room - width));
    }
    let without_blank = current.trim_end();
    if without_blank.width() == room {
        without_blank.to_owned()
    } else {
        known.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_keep_the_width_that_the_editor_counts_with() {
        let connected = "[zk: h:1(CONNECTED) 3] ";
        let connecting = "[zk: h:1(CONNECTING) 3] ";
        assert_eq!(fitted(connecting, connected), "[zk: h:1(CONNECTING) 3]");
        assert_eq!(fitted(connected, connecting), "[zk: h:1(CONNECTED) 3]  ");
        assert_eq!(
            fitted("[zk: h:1(CONNECTEDREADONLY) 3] ", connected),
            connected
        );
    }
}
