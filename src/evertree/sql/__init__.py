"""A table of a database, followed: its rows are clustered, and the clusters are written beside it."""

from evertree.extras import require

require("sqlalchemy", "follow", "sql")  # before the modules that import it

from evertree.sql.follower import Follower, Tick  # noqa: E402
from evertree.sql.start import follow  # noqa: E402

__all__ = ["Follower", "Tick", "follow"]
