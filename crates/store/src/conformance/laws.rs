//! What holds for every backend beyond random sequences.
