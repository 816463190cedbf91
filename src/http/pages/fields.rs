//! What a form brings, read as strictly as the bodies of the API.
//!
//! The usual readers of forms take the last of two equal fields and put a question mark where bytes are no text. Here
//! both are refused.

use axum::extract::{FromRequest, Request};
use axum::http::header;
use percent_encoding::percent_decode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::body;
use crate::http::kind::Kind;
use crate::http::problem::Problem;
use crate::invalid::InvalidField;

const FORM: &str = "application/x-www-form-urlencoded";

/// The fields of a form, in their order.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let essence = content_type.and_then(|value| value.split(';').next());
        if !essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(FORM)) {
            return Err(Problem::unsupported_media_type(FORM));
        }
        Self::parse(&body::read(request).await?)
    }
}

impl Fields {
    /// Reads `a=1&b=2`.
    ///
    /// # Errors
    /// What is no text.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let pairs = bytes.split(|&byte| byte == b'&');
        pairs
            .filter(|pair| !pair.is_empty())
            .map(parse_pair)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The first value of a field.
    pub fn first(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The names of all fields, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _)| field.as_str())
    }

    /// All values of a field, in their order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.0.iter().filter(move |(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Without the fields that are as the field `was` tells, a form in itself: how they stood when the page was drawn.
    /// Whoever sends a whole form to change one thing must not set back what others changed meanwhile.
    ///
    /// # Errors
    /// A `was` that is no form.
    pub fn changed(mut self) -> Result<Self, Problem> {
        let Some(at) = self.0.iter().position(|(field, _)| field == "was") else {
            return Ok(self);
        };
        let (_, was) = self.0.remove(at);
        let was = Self::parse(was.as_bytes())?;
        self.0.retain(|field| !was.0.contains(field));
        Ok(self)
    }

    /// Reads all fields into a value, each as text.
    ///
    /// # Errors
    /// The field that is missing, unknown, there twice or wrong.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, Problem> {
        self.read_with(|_, text| Ok(Value::from(text)))
    }

    /// Reads all fields into a value, each after a conversion.
    ///
    /// # Errors
    /// The field that is missing, unknown, there twice or wrong.
    pub fn read_with<T: DeserializeOwned>(
        self,
        convert: impl Fn(&str, &str) -> Result<Value, InvalidField>,
    ) -> Result<T, Problem> {
        let mut object = Map::new();
        for (field, text) in self.0 {
            let value = convert(&field, &text)?;
            if object.contains_key(&field) {
                return Err(InvalidField::new(field, "is there twice").into());
            }
            object.insert(field, value);
        }
        body::from_value(Value::Object(object))
    }
}

fn parse_pair(pair: &[u8]) -> Result<(String, String), Problem> {
    let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, &[][..]),
    };
    let name = decode(name).ok_or_else(|| not_text("the name of a field"))?;
    let value = decode(value).ok_or_else(|| not_text(&name))?;
    Ok((name, value))
}

fn decode(bytes: &[u8]) -> Option<String> {
    let spaced: Vec<u8> = bytes
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    let text = percent_decode(&spaced).decode_utf8().ok()?;
    Some(text.into_owned())
}

fn not_text(field: &str) -> Problem {
    Problem::new(Kind::INVALID_FORM, format!("{field} is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(form: &str) -> Vec<(String, String)> {
        Fields::parse(form.as_bytes()).unwrap().0
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        assert_eq!(
            pairs("seat=A1&buyer=Ana+M%C3%BCller%2B"),
            [pair("seat", "A1"), pair("buyer", "Ana Müller+")]
        );
        assert_eq!(pairs(""), []);
        assert_eq!(
            pairs("&a&b==%&"),
            [pair("a", ""), pair("b", "=%")],
            "what is no escape is taken as it is"
        );
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for form in ["buyer=%ff", "%c3=1", "buyer=%ed%a0%80"] {
            let problem = Fields::parse(form.as_bytes()).unwrap_err();
            assert_eq!((problem.status, problem.word), (400, "invalid-form"));
        }
    }

    #[test]
    fn what_is_as_it_was_is_left_out() {
        let changed = |form: &[u8]| Ok::<_, Problem>(Fields::parse(form)?.changed()?.0);
        let form = b"lock=redis&compare=true&was=lock%3Dredis%26compare%3Dfalse";
        assert_eq!(changed(form).unwrap(), [pair("compare", "true")]);
        assert_eq!(changed(b"a=1").unwrap(), [pair("a", "1")]);
        assert_eq!(changed(b"a=1&was=").unwrap(), [pair("a", "1")]);
        assert_eq!(changed(b"a=1&was=%25ff").unwrap_err().word, "invalid-form");
    }

    #[test]
    fn a_field_that_is_there_twice_is_named() {
        let twice = Fields::parse(b"seat=A1&seat=A2").unwrap();
        let problem = twice.read::<Value>().unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("seat"));
    }
}
