"""What grows with what: a session that grows, a file of many sessions, many sessions at once.

`growing`, `many` and `crowd` each give figures for one plot of the page of performance.
"""
