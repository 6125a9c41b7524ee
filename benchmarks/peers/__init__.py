"""The store beside what people use today, and beside hand-written ``sqlite3``, in one run.

Each side works in a process of its own and is asked for one operation after the other, in turn, so
that no side pays for what another one imports or keeps in memory. `peer.Peer` says what a side has
to do; `table.PEERS` lists them.
"""
