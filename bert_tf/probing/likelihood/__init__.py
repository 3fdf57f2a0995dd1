"""Probes that compare how probable a model finds texts, or what fills their gaps: one engine, and a small file for each set."""
