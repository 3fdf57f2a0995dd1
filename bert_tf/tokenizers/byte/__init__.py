"""Bytes of UTF-8 as tokens."""
