"""Follow a table of a database: cluster its rows, and keep the clusters in tables beside it."""

from evertree.extras import require

require("sqlalchemy", "follow", "sql")  # before the modules that import it

from evertree.sql.follower import Follower, Tick  # noqa: E402
from evertree.sql.start import follow  # noqa: E402

__all__ = ["Follower", "Tick", "follow"]
