"""Coding agents from npm go on with exported sessions, asking a made-up model on loopback."""
