"""The spellings of what the theory has normalised: an e-graph of normal forms, and the choice from it."""
