"""Labelled files as tables: formats, columns, labels."""
