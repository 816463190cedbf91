//! Distributed locks as a library.
