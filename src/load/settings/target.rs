//! A replica that is asked.

use std::fmt;
use std::str::FromStr;

use hyper::Uri;

/// The origin of a replica: `http://host:port`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    host: String,
    port: u16,
}

impl Target {
    /// `host:port`, as in the header `Host`.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be the address of a replica, such as http://127.0.0.1:3001".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(wrong)?;
        let is_origin = uri.scheme_str() == Some("http")
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none()
            && !uri
                .authority()
                .is_some_and(|all| all.as_str().contains('@'));
        if !is_origin {
            return Err(wrong());
        }
        let has_port = uri.authority().is_some_and(|all| all.as_str() != host);
        let port = match uri.port_u16() {
            Some(port) if port > 0 => port,
            None if !has_port => 80,
            _ => return Err(wrong()),
        };
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn an_origin_is_a_target_and_nothing_else() {
        let shown = |text: &str| text.parse::<Target>().map(|target| target.to_string());
        assert_eq!(
            shown("http://127.0.0.1:3001/").unwrap(),
            "http://127.0.0.1:3001"
        );
        assert_eq!(shown("http://[::1]:3001").unwrap(), "http://[::1]:3001");
        assert_eq!(
            shown("http://a.localhost").unwrap(),
            "http://a.localhost:80"
        );
        for wrong in [
            "",
            "127.0.0.1:3001",
            "https://a:1",
            "http://a/rooms",
            "http://a?x",
            "http://me:secret@a:1",
            "http://a:99999",
            "http://a:0",
            "http://a:",
        ] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }
}
