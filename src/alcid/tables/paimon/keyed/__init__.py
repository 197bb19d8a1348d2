"""Tables with a primary key: upserts, compactions, and what keeps each key live once."""
