//! Why an engine has no figure.

/// Error message.
pub(crate) type Failure = String;
