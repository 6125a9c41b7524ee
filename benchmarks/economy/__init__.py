"""What policies do to the bill of recorded sessions, and to what their models needed again."""
