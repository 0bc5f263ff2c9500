"""Bytes to meaning and back: enums, layouts, codec, text form and rules."""
