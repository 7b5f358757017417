//! JSON in the form of ZooKeeper's AdminServer: fields in order, two blanks for each level, a blank around colons.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// A number that was written already.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Map(Fields),
}

/// Fields in order.
pub(super) type Fields = Vec<(String, Json)>;

/// Shorthand for a field.
pub(super) fn field(name: &str, value: impl Into<Json>) -> (String, Json) {
    (name.to_owned(), value.into())
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Json {
        Json::Int(value)
    }
}

impl From<i32> for Json {
    fn from(value: i32) -> Json {
        Json::Int(value.into())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Json {
        Json::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Json {
        Json::Int(value.into())
    }
}

impl From<u16> for Json {
    fn from(value: u16) -> Json {
        Json::Int(value.into())
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Json {
        Json::Text(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Json {
        Json::Text(value)
    }
}

impl From<Fields> for Json {
    fn from(fields: Fields) -> Json {
        Json::Map(fields)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::List(items)
    }
}

/// Reads JSON with its fields in order.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Json;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut map = Fields::new();
        while let Some(field) = fields.next_entry()? {
            map.push(field);
        }
        Ok(Json::Map(map))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(InOrder)
    }
}

impl Json {
    /// A list of what can be made values.
    pub(super) fn list<T: Into<Json>>(items: impl IntoIterator<Item = T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }

    /// A value of the program, with the fields of its type in order.
    pub(super) fn of(value: &impl Serialize) -> serde_json::Result<Json> {
        serde_json::from_str(&serde_json::to_string(value)?)
    }

    /// A figure as `mntr` prints it: a number if it reads as one.
    pub(super) fn figure(text: &str) -> Json {
        if let Ok(number) = text.parse::<i64>() {
            return Json::Int(number);
        }
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        match text.parse::<f64>() {
            Ok(number) if is_number && number.is_finite() => Json::Number(text.to_owned()),
            _ => Json::Text(text.to_owned()),
        }
    }

    /// The text.
    pub(super) fn pretty(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        match self {
            Json::Null => text.push_str("null"),
            Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Json::Int(number) => append(text, format_args!("{number}")),
            Json::Number(number) => text.push_str(number),
            Json::Text(value) => write_text(text, value),
            Json::List(items) => write_list(text, items, depth),
            Json::Map(fields) => write_map(text, fields, depth),
        }
    }
}

fn write_list(text: &mut String, items: &[Json], depth: usize) {
    text.push_str("[ ");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        item.write(text, depth);
    }
    text.push_str(if items.is_empty() { "]" } else { " ]" });
}

fn write_map(text: &mut String, fields: &[(String, Json)], depth: usize) {
    if fields.is_empty() {
        text.push_str("{ }");
        return;
    }
    text.push('{');
    for (index, (name, value)) in fields.iter().enumerate() {
        text.push_str(if index > 0 { ",\n" } else { "\n" });
        indent(text, depth + 1);
        write_text(text, name);
        text.push_str(" : ");
        value.write(text, depth + 1);
    }
    text.push('\n');
    indent(text, depth);
    text.push('}');
}

fn indent(text: &mut String, depth: usize) {
    for _ in 0..depth {
        text.push_str("  ");
    }
}

fn write_text(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            control if control < ' ' => append(text, format_args!("\\u{:04X}", control as u32)),
            other => text.push(other),
        }
    }
    text.push('"');
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_that_of_the_admin_server() {
        let inner = vec![field("a", 1), field("b", "x\"\\\n\u{1}ü")];
        let value = Json::Map(vec![
            field("none", Json::Null),
            field("empty", Fields::new()),
            field("list", Json::list([1, 2])),
            field("nothing", Json::List(Vec::new())),
            field("maps", Json::List(vec![inner.clone().into(), inner.into()])),
        ]);
        let text = "{\n  \"none\" : null,\n  \"empty\" : { },\n  \"list\" : [ 1, 2 ],\n  \"nothing\" : [ ],\n  \
                    \"maps\" : [ {\n    \"a\" : 1,\n    \"b\" : \"x\\\"\\\\\\n\\u0001ü\"\n  }, {\n    \"a\" : 1,\n    \
                    \"b\" : \"x\\\"\\\\\\n\\u0001ü\"\n  } ]\n}";
        assert_eq!(value.pretty(), text);
        let read: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(read["maps"][0]["b"], "x\"\\\n\u{1}ü");
    }

    #[test]
    fn values_of_the_program_keep_their_order() {
        #[derive(Serialize)]
        struct Value {
            z: u64,
            a: Option<f64>,
            m: Vec<&'static str>,
            b: bool,
            i: i64,
            n: (),
        }
        let value = Value {
            z: u64::MAX,
            a: Some(0.5),
            m: vec!["x"],
            b: true,
            i: -1,
            n: (),
        };
        let json = Json::of(&value).expect("it has a form");
        let text = "{\n  \"z\" : 18446744073709551615,\n  \"a\" : 0.5,\n  \"m\" : [ \"x\" ],\n  \"b\" : true,\n  \
                    \"i\" : -1,\n  \"n\" : null\n}";
        assert_eq!(json.pretty(), text);
    }

    #[test]
    fn figures_are_numbers_where_they_can() {
        for (text, shown) in [
            ("12", "12"),
            ("-1", "-1"),
            ("0.0", "0.0"),
            ("1.0E7", "1.0E7"),
            ("NaN", "\"NaN\""),
            ("leader", "\"leader\""),
            ("3.9.5-x, built", "\"3.9.5-x, built\""),
            ("infinity", "\"infinity\""),
        ] {
            assert_eq!(Json::figure(text).pretty(), shown);
        }
    }
}
