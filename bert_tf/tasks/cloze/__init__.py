"""ReCoRD: which entity of a passage fills the gap of a query."""
