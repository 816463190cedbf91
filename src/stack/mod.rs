//! Real servers, started and ended with the program that asked for them.
