//! From the text of a form to the JSON of a switch. Whether the value fits is for the switches themselves to say.

use std::num::IntErrorKind;

use serde_json::Value;

use crate::invalid::InvalidField;

/// The JSON value of a switch that a form brings as text.
///
/// # Errors
/// The switch whose text is no value of its kind.
pub fn switch_value(switch: &str, text: &str) -> Result<Value, InvalidField> {
    match switch {
        "locking" | "compare" | "renew" => truth(switch, text),
        "ttl_ms" | "wait_ms" | "think_ms" => whole_number(switch, text),
        _ => Ok(Value::from(text)),
    }
}

fn truth(switch: &str, text: &str) -> Result<Value, InvalidField> {
    match text {
        "true" => Ok(Value::Bool(true)),
        "false" => Ok(Value::Bool(false)),
        _ => Err(InvalidField::new(switch, "must be true or false")),
    }
}

fn whole_number(switch: &str, text: &str) -> Result<Value, InvalidField> {
    let refused = || InvalidField::new(switch, "must be a whole number of milliseconds");
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    match text.parse::<u32>() {
        Ok(number) => Ok(Value::from(number)),
        // Too large for any switch: its range will say so.
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Ok(Value::from(u32::MAX)),
        Err(_) => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_the_json_that_the_api_takes() {
        let value = |switch, text| switch_value(switch, text).unwrap();
        assert_eq!(value("locking", "false"), Value::Bool(false));
        assert_eq!(value("ttl_ms", "2000"), Value::from(2000));
        assert_eq!(value("wait_ms", "99999999999"), Value::from(u32::MAX));
        assert_eq!(value("lock", "redis"), Value::from("redis"));
        assert_eq!(value("unknown", "1"), Value::from("1"));
    }

    #[test]
    fn what_is_no_value_of_its_kind_is_refused_by_name() {
        for (switch, text) in [
            ("locking", "on"),
            ("renew", ""),
            ("ttl_ms", ""),
            ("ttl_ms", "-1"),
            ("ttl_ms", "+5"),
            ("think_ms", "1e3"),
            ("wait_ms", " 5"),
            ("wait_ms", "٥"),
        ] {
            assert_eq!(switch_value(switch, text).unwrap_err().field, switch);
        }
    }
}
