"""Where a value comes from, and how the user changes it there: an expression in, an `Origin` out. Pure.

A script seldom says `num_workers=2`: it says `args.workers`, which an option of its own gives, or a configuration file.
One file a kind of origin; `follower` follows names from file to file, and asks each kind in turn.
"""
