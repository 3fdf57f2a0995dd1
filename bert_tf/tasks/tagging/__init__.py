"""Tagging: a tag for every word of a sentence."""
