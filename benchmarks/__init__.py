"""Programs that print how many times the cost of hand-written ``sqlite3`` the store costs, measured in one run."""
