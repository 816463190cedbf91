//! One of the sides that are compared: switches, or targets of its own, or both.

use std::str::FromStr;

use super::Target;

/// What makes one side different from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// As it was typed: its name in every report.
    pub label: String,
    /// Names and values of the switches of its room that are no defaults. The replica knows what they may be.
    pub switches: Vec<(String, String)>,
    /// Targets of its own; without any, those of the run.
    pub targets: Vec<Target>,
}

impl Side {
    /// A room as it is made.
    pub fn plain() -> Self {
        Self {
            label: "defaults".to_owned(),
            switches: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// A side with one switch.
    pub fn with(switch: &str, value: &str) -> Self {
        Self {
            label: format!("{switch}={value}"),
            switches: vec![(switch.to_owned(), value.to_owned())],
            targets: Vec::new(),
        }
    }
}

impl FromStr for Side {
    type Err = String;

    /// `locking=off`, `lock=redis think_ms=20`, `target=http://127.0.0.1:3001`: words with a space or a comma between.
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .collect();
        if words.is_empty() {
            return Err("must name a switch or a target, such as lock=redis".to_owned());
        }
        let mut side = Self {
            label: words.join(" "),
            ..Self::plain()
        };
        for word in words {
            let (name, value) = name_and_value(word)?;
            if name == "target" {
                let target = value.parse().map_err(|error| format!("target {error}"))?;
                side.targets.push(target);
            } else if side.switches.iter().any(|(there, _)| there == name) {
                return Err(format!("must name {name} only once"));
            } else {
                side.switches.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(side)
    }
}

fn name_and_value(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("must be made of words like locking=off, which {word:?} is not"))
}

#[cfg(test)]
mod tests {
    use super::Side;

    #[test]
    fn a_side_is_made_of_switches_and_targets() {
        let side: Side = "lock=redis, locking=on  think_ms=20 target=http://a:1"
            .parse()
            .unwrap();
        assert_eq!(
            side.label,
            "lock=redis locking=on think_ms=20 target=http://a:1"
        );
        let switches = [("lock", "redis"), ("locking", "on"), ("think_ms", "20")];
        let switches = switches.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(side.switches, switches);
        assert_eq!(side.targets.len(), 1);
    }

    #[test]
    fn what_is_no_side_is_told() {
        for (wrong, told) in [
            ("", "must name"),
            ("redis", "words like"),
            ("lock=", "words like"),
            ("lock=redis lock=row", "only once"),
            ("target=nowhere", "address of a replica"),
        ] {
            let error = wrong.parse::<Side>().unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }
}
