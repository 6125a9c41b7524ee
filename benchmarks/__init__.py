"""Programs that print how many times the cost of hand-written ``sqlite3`` the store costs.

Both are measured in one run.
"""
