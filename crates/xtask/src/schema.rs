//! Reads the protocol schema and writes the Rust records.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

/// One declared record.
pub struct Record {
    name: String,
    doc: Vec<String>,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    doc: Vec<String>,
    kind: Kind,
}

enum Kind {
    Boolean,
    Int,
    Long,
    Buffer,
    Ustring,
    Vector(Box<Kind>),
    Record(String),
}

/// Parses the schema's text; errors name the line.
pub fn parse(text: &str) -> Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    let mut open: Option<Record> = None;
    let mut doc = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let at = || format!("schema line {}", index + 1);
        if let Some(comment) = line.strip_prefix("##") {
            doc.push(comment.trim().to_string());
        } else if line.is_empty() || line.starts_with('#') {
            continue;
        } else if let Some(head) = line.strip_prefix("record ") {
            let name = head.strip_suffix('{').with_context(at)?.trim().to_string();
            open = Some(Record {
                name,
                doc: std::mem::take(&mut doc),
                fields: Vec::new(),
            });
        } else if line == "}" {
            records.push(open.take().with_context(at)?);
        } else {
            let field = parse_field(line, std::mem::take(&mut doc)).with_context(at)?;
            open.as_mut().with_context(at)?.fields.push(field);
        }
    }
    if let Some(record) = open {
        bail!("record {} is not closed", record.name);
    }
    check_references(&records)?;
    Ok(records)
}

fn parse_field(line: &str, doc: Vec<String>) -> Result<Field> {
    let line = line.strip_suffix(';').context("a field ends in ';'")?;
    let (kind, name) = line.rsplit_once(' ').context("a field is `type name;`")?;
    Ok(Field {
        name: name.trim().to_string(),
        doc,
        kind: parse_kind(kind.trim()),
    })
}

fn parse_kind(text: &str) -> Kind {
    match text {
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "buffer" => Kind::Buffer,
        "ustring" => Kind::Ustring,
        other => match other
            .strip_prefix("vector<")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            Some(inner) => Kind::Vector(Box::new(parse_kind(inner))),
            None => Kind::Record(other.to_string()),
        },
    }
}

fn check_references(records: &[Record]) -> Result<()> {
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    for record in records {
        for field in &record.fields {
            let mut kind = &field.kind;
            while let Kind::Vector(inner) = kind {
                kind = inner;
            }
            if let Kind::Record(name) = kind
                && !names.contains(&name.as_str())
            {
                bail!("{}.{}: no record {name}", record.name, field.name);
            }
        }
    }
    Ok(())
}

/// The text of `records.rs`.
pub fn to_rust(records: &[Record]) -> Result<String> {
    let borrows = borrowing(records);
    let mut out = String::from(
        "//! Generated from jute-schema/zookeeper.jute by `quenda-xtask generate`. Do not edit.\n\n\
         use std::borrow::Cow;\n\nuse bytes::BytesMut;\n\n\
         use crate::jute::{Decode, DecodeError, Encode, Reader};\n",
    );
    for record in records {
        write_struct(&mut out, record, &borrows)?;
        write_codec(&mut out, record, &borrows)?;
    }
    Ok(out)
}

/// Which records hold borrowed bytes; a record may only refer to records declared above it.
fn borrowing(records: &[Record]) -> BTreeMap<String, bool> {
    let mut borrows = BTreeMap::new();
    for record in records {
        let any = record
            .fields
            .iter()
            .any(|field| kind_borrows(&field.kind, &borrows));
        borrows.insert(record.name.clone(), any);
    }
    borrows
}

fn kind_borrows(kind: &Kind, borrows: &BTreeMap<String, bool>) -> bool {
    match kind {
        Kind::Boolean | Kind::Int | Kind::Long => false,
        Kind::Buffer | Kind::Ustring => true,
        Kind::Vector(inner) => kind_borrows(inner, borrows),
        Kind::Record(name) => borrows.get(name).copied().unwrap_or(false),
    }
}

fn rust_type(kind: &Kind, borrows: &BTreeMap<String, bool>) -> String {
    match kind {
        Kind::Boolean => "bool".into(),
        Kind::Int => "i32".into(),
        Kind::Long => "i64".into(),
        Kind::Buffer => "Option<&'a [u8]>".into(),
        Kind::Ustring => "Option<Cow<'a, str>>".into(),
        Kind::Vector(inner) => format!("Option<Vec<{}>>", rust_type(inner, borrows)),
        Kind::Record(name) if kind_borrows(kind, borrows) => format!("{name}<'a>"),
        Kind::Record(name) => name.clone(),
    }
}

fn write_struct(out: &mut String, record: &Record, borrows: &BTreeMap<String, bool>) -> Result<()> {
    let life = if borrows[&record.name] { "<'a>" } else { "" };
    let copy = if borrows[&record.name] { "" } else { "Copy, " };
    writeln!(out)?;
    for line in &record.doc {
        writeln!(out, "/// {line}")?;
    }
    writeln!(
        out,
        "#[derive(Debug, Clone, {copy}Default, PartialEq, Eq)]\npub struct {}{life} {{",
        record.name
    )?;
    for field in &record.fields {
        if field.doc.is_empty() {
            writeln!(out, "    /// {}.", default_doc(field))?;
        }
        for line in &field.doc {
            writeln!(out, "    /// {line}")?;
        }
        writeln!(
            out,
            "    pub {}: {},",
            rust_name(&field.name),
            rust_type(&field.kind, borrows)
        )?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

fn default_doc(field: &Field) -> &'static str {
    match field.name.as_str() {
        "path" => "Absolute path of the znode",
        "watch" => "Whether to leave a watch",
        "data" => "Data of the znode",
        "acl" => "Access control list",
        "stat" => "Metadata of the znode",
        "err" => "Error code",
        "token" => "One token of the SASL exchange, null if none",
        _ => "See the record",
    }
}

fn write_codec(out: &mut String, record: &Record, borrows: &BTreeMap<String, bool>) -> Result<()> {
    let name = &record.name;
    let (life, anonymous, decode_life) = if borrows[name] {
        ("<'a>", "<'_>", "'a")
    } else {
        ("", "", "'_")
    };
    let params = if borrows[name] { "<'a>" } else { "" };
    writeln!(
        out,
        "\nimpl{params} Decode<{decode_life}> for {name}{life} {{\n    \
         fn decode(reader: &mut Reader<{decode_life}>) -> Result<Self, DecodeError> {{\n        Ok({name} {{"
    )?;
    for field in &record.fields {
        writeln!(
            out,
            "            {}: Decode::decode(reader)?,",
            rust_name(&field.name)
        )?;
    }
    writeln!(out, "        }})\n    }}\n}}")?;
    writeln!(
        out,
        "\nimpl Encode for {name}{anonymous} {{\n    fn encode(&self, out: &mut BytesMut) {{"
    )?;
    for field in &record.fields {
        writeln!(out, "        self.{}.encode(out);", rust_name(&field.name))?;
    }
    writeln!(out, "    }}\n}}")?;
    Ok(())
}

/// camelCase to snake_case; `type` is a keyword and becomes `kind`.
fn rust_name(name: &str) -> String {
    if name == "type" {
        return "kind".into();
    }
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_record_is_named() {
        let error = parse("record A {\n    Missing m;\n}\n")
            .err()
            .map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("A.m: no record Missing"));
    }

    #[test]
    fn names_follow_rust_habits() {
        assert_eq!(rust_name("lastZxidSeen"), "last_zxid_seen");
        assert_eq!(rust_name("type"), "kind");
    }
}
