"""The launcher: one command that brings the whole platform up on one machine."""
