"""Classification of a text or a pair where several labels can be right, or none."""
