"""Multiple choice: one of several options answers a question; see `task.MultipleChoiceTask`."""
