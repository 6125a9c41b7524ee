"""Stores of other libraries and apps: their databases, and what they export.

A database is read by its layout, which gathers each conversation as one value; how that becomes
messages stands beside it.
"""
