//! What users reported, against the verbs of the library.

mod reading;
