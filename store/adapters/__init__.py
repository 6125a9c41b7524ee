"""Stores of conversations for agent frameworks: one module each, in the framework's own terms.

Each module stands on the public face of the store alone and imports its framework, which an extra
of the same name installs; so none is imported here.
"""
