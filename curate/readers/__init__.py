"""Readers: files of a source as events that tile them, and events as rows."""
